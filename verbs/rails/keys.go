package rails

import (
	"slices"

	"github.com/onesided/rma/internal/bounds"
	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/verbs"
)

const (
	// keyRail is the rail over which keys are asked for.
	keyRail = 1
	// keyWindow is how many questions may be open, and how many keys being forgotten.
	keyWindow = 4
	// keyReceives are there for twice as many messages as the peer may send unasked: answers of
	// the peer's always find one.
	keyReceives = 4 * keyWindow
	// keySends are an answer to each, and requests of this side's.
	keySends = keyReceives + 2*keyWindow
	// maxKnown bounds the regions of the peer's that are known, maxTold those that the peer was
	// told of and has not forgotten.
	maxKnown = 4096
	maxTold  = 4096
)

// keys are what a queue pair knows of the peer's keys on other rails, and the peer of its. The
// mutex of the queue pair guards them.
type keys struct {
	// memory has room for keySends messages, and then for those that are received.
	memory []byte
	region verbs.MemoryRegion
	// requests are this side's: keyWindow questions, and then as many keys to forget. later are
	// those to forget that wait for a place there.
	requests [2 * keyWindow]keyRequest
	later    []uint32
	known    map[uint32]*known
	// told are those regions that the peer knows, by their key. disowned: there are none any more.
	told     map[uint32]*region
	disowned bool
	// busy counts the requests that are open and the answers that have not left.
	busy int

	message message
	sends   [1]verbs.SendRequest
	receive [1]verbs.ReceiveRequest
	segment [1]verbs.Segment
}

// A keyRequest is a message that waits for an answer.
type keyRequest struct {
	key             uint32
	address, length uint64
	// leaving: the send has not completed. open: the peer has not answered.
	leaving, open bool
}

// A known region is one of the peer's, with its places on the rails after the first once they
// are there.
type known struct {
	answered        bool
	address, length uint64
	places          [maxRails - 1]place
}

// open prepares to receive.
func (k *keys) open(q *queuePair) (err error) {
	k.memory = make([]byte, (keySends+keyReceives)*messageBytes)
	k.known, k.told = make(map[uint32]*known), make(map[uint32]*region)
	if k.region, err = q.device.rails[keyRail].RegisterMemory(k.memory, verbs.LocalWrite); err != nil {
		return of(keyRail, err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range keyReceives {
		if err := k.await(q, i); err != nil {
			return err
		}
	}
	// On the others nothing comes: that these are flushed tells of a failure.
	for rail := keyRail + 1; rail < len(q.pairs); rail++ {
		k.receive[0] = verbs.ReceiveRequest{ID: uint64(q.place)<<32 | receiveKind}
		if _, err := q.pairs[rail].PostReceive(k.receive[:]); err != nil {
			return of(rail, err)
		}
	}
	return nil
}

// close gives back what open took.
func (k *keys) close() error {
	if k.region == nil {
		return nil
	}
	return k.region.Deregister()
}

// slot is the memory of a message: first those that are sent.
func (k *keys) slot(i int) []byte { return k.memory[i*messageBytes:][:messageBytes] }

// await posts the i-th receive.
func (k *keys) await(q *queuePair, i int) error {
	k.segment[0] = verbs.Segment{Memory: k.slot(keySends + i), LKey: k.region.LKey()}
	k.receive[0] = verbs.ReceiveRequest{ID: uint64(q.place)<<32 | receiveKind | uint64(i), Segments: k.segment[:]}
	if _, err := q.pairs[keyRail].PostReceive(k.receive[:]); err != nil {
		return of(keyRail, err)
	}
	return nil
}

// send sends what message is, in a slot.
func (k *keys) send(q *queuePair, slot int) error {
	n := k.message.encode(k.slot(slot))
	k.segment[0] = verbs.Segment{Memory: k.slot(slot)[:n], LKey: k.region.LKey()}
	k.sends[0] = verbs.SendRequest{ID: uint64(q.place)<<32 | sentKind | uint64(slot), Flags: verbs.Signalled, Segments: k.segment[:]}
	if _, err := q.pairs[keyRail].PostSend(k.sends[:]); err != nil {
		return of(keyRail, err)
	}
	k.count(q, 1)
	return nil
}

func (k *keys) count(q *queuePair, n int) {
	k.busy += n
	q.device.onOthers.Add(int64(n))
}

// outstanding returns how many of the requests in device.onOthers are key messages.
func (k *keys) outstanding() (n int) {
	n, k.busy = k.busy, 0
	return n
}

// find gives the places of the region that a request is for, nil if they are not known. It asks for
// them then.
func (k *keys) find(q *queuePair, r *verbs.SendRequest, length int) *known {
	at := k.known[r.RKey]
	if at == nil {
		k.ask(q, r, length)
		return nil
	}
	if !at.answered || !bounds.Contains(at.address, at.length, r.RemoteAddress, uint64(length)) {
		return nil
	}
	return at
}

func (k *keys) ask(q *queuePair, r *verbs.SendRequest, length int) {
	i := k.vacant(0)
	if i < 0 || k.disowned {
		return
	}
	if len(k.known) >= maxKnown {
		for key, at := range k.known {
			if at.answered {
				delete(k.known, key)
			}
		}
	}
	k.known[r.RKey] = new(known)
	k.message = message{kind: question, key: r.RKey, address: r.RemoteAddress, length: uint64(length)}
	q.doomIf(k.request(q, i))
}

// vacant is a place for a request among keyWindow from first on, negative if there is none.
func (k *keys) vacant(first int) int {
	for i := first; i < first+keyWindow; i++ {
		if r := &k.requests[i]; !r.leaving && !r.open {
			return i
		}
	}
	return -1
}

// request sends what message is, as the i-th request.
func (k *keys) request(q *queuePair, i int) error {
	k.requests[i] = keyRequest{key: k.message.key, address: k.message.address, length: k.message.length, leaving: true, open: true}
	return k.send(q, keyReceives+i)
}

// sent notes that a message has left, and what it answered can come again.
func (k *keys) sent(q *queuePair, slot int) error {
	if slot < keyReceives {
		k.count(q, -1)
		return k.await(q, slot)
	}
	i := slot - keyReceives
	k.requests[i].leaving = false
	return k.ended(q, i)
}

// ended looks whether the i-th request is over.
func (k *keys) ended(q *queuePair, i int) error {
	if r := &k.requests[i]; r.leaving || r.open {
		return nil
	}
	k.count(q, -1)
	return k.forgetLater(q)
}

// received notes the message in a receive.
func (k *keys) received(q *queuePair, rail int, c *verbs.Completion) error {
	i := int(c.ID & numberMask)
	if rail != keyRail {
		return protocolError("a message of %s over rail %d, where none is sent", errtext.Count(c.Bytes, "byte"), rail)
	}
	if k.disowned {
		return nil
	}
	m := &k.message
	if err := m.decode(k.slot(keySends + i)[:min(int(c.Bytes), messageBytes)], len(q.pairs)); err != nil {
		return err
	}
	switch m.kind {
	case question:
		k.tell(q)
		return k.send(q, i)
	case forget:
		if at := k.known[m.key]; at != nil && at.answered {
			delete(k.known, m.key)
		}
		*m = message{kind: forgotten, key: m.key}
		return k.send(q, i)
	case answer:
		if err := k.learn(q); err != nil {
			return err
		}
	case forgotten:
		if err := k.confirmed(q); err != nil {
			return err
		}
	}
	return k.await(q, i)
}

// answered is which open request from first on has a key; it is not open any more.
func (k *keys) answered(first int, key uint32) (i int, err error) {
	for i := first; i < first+keyWindow; i++ {
		if r := &k.requests[i]; r.open && r.key == key {
			r.open = false
			return i, nil
		}
	}
	return 0, protocolError("an answer of kind %d about the key %#x, of which nothing was asked", k.message.kind, key)
}

// learn takes an answer.
func (k *keys) learn(q *queuePair) error {
	m := &k.message
	i, err := k.answered(0, m.key)
	if err != nil {
		return err
	}
	if r := &k.requests[i]; m.count == 0 {
		// It may be given to another region.
		delete(k.known, m.key)
	} else if !bounds.Contains(m.address, m.length, r.address, r.length) {
		return protocolError("an answer about %s at %#x; asked was for %d at %#x", errtext.Count(m.length, "byte"), m.address, r.length, r.address)
	} else if at := k.known[m.key]; at != nil {
		*at = known{answered: true, address: m.address, length: m.length, places: m.places}
	}
	return k.ended(q, i)
}

// tell makes the answer to a question, and notes that the peer knows then.
func (k *keys) tell(q *queuePair) {
	d, m := q.device, &k.message
	asked := *m
	*m = message{kind: answer, key: asked.key, address: asked.address, length: asked.length}
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.regions.byRKey[asked.key]
	if r == nil {
		return
	}
	whole := r.Remote()
	if !bounds.Contains(whole.Address, whole.Length, asked.address, asked.length) || len(k.told)+len(k.later)+keyWindow >= maxTold {
		return
	}
	m.address, m.length, m.count = whole.Address, whole.Length, len(q.pairs)-1
	for i, other := range r.rails[1:] {
		at := other.Remote()
		m.places[i] = place{at.Address, at.RKey}
	}
	if k.told[asked.key] != r {
		r.askers = append(r.askers, q)
	}
	k.told[asked.key] = r
}

// retract has the peer forget a key, of a region that has ended.
func (q *queuePair) retract(key uint32) {
	q.mu.Lock()
	if k := &q.keys; k.disowned {
		q.device.forgotten(key)
	} else {
		delete(k.told, key)
		k.later = append(k.later, key)
		q.doomIf(k.forgetLater(q))
	}
	q.mu.Unlock()
	q.sever()
}

// forgetLater tells of keys to forget, as far as there is room.
func (k *keys) forgetLater(q *queuePair) error {
	for len(k.later) > 0 {
		i := k.vacant(keyWindow)
		if i < 0 {
			return nil
		}
		k.message = message{kind: forget, key: k.later[0]}
		k.later = k.later[1:]
		if err := k.request(q, i); err != nil {
			return err
		}
	}
	k.later = nil
	return nil
}

// confirmed notes that the peer has forgotten a key.
func (k *keys) confirmed(q *queuePair) error {
	i, err := k.answered(keyWindow, k.message.key)
	if err != nil {
		return err
	}
	q.device.forgotten(k.message.key)
	return k.ended(q, i)
}

// forgotten notes that a peer does not remember a key any more.
func (d *device) forgotten(key uint32) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.regions.release(key)
}

// disown forgets that the peer knows anything, because the queue pair has ended.
func (k *keys) disown(q *queuePair) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if k.disowned {
		return
	}
	k.disowned = true
	d := q.device
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, r := range k.told {
		r.askers = slices.DeleteFunc(r.askers, func(other *queuePair) bool { return other == q })
	}
	for _, key := range k.later {
		d.regions.release(key)
	}
	for i := keyWindow; i < len(k.requests); i++ {
		if r := &k.requests[i]; r.open {
			d.regions.release(r.key)
		}
	}
	k.told, k.later = nil, nil
}
