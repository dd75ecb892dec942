package rails

import (
	"slices"

	"github.com/onesided/rma/internal/bounds"
	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/verbs"
)

const (
	// keyRail is the rail over which keys are requested.
	keyRail = 1
	// keyWindow bounds the open key requests, and the keys that are being forgotten.
	keyWindow = 4
	// keyReceives is twice the number of messages that the peer may send by itself, so that its responses always find a
	// receive.
	keyReceives = 4 * keyWindow
	// keySends are a response to each of them, and the requests of this side.
	keySends = keyReceives + 2*keyWindow
	// maxKnown bounds the known regions of the peer, maxAdvertised the regions that the peer knows and has not
	// forgotten.
	maxKnown      = 4096
	maxAdvertised = 4096
)

// keys are what a queue pair knows of the peer's keys on other rails, and what the peer knows of this side's. The mutex
// of the queue pair guards them.
type keys struct {
	// memory has room for keySends messages, followed by those that are received.
	memory []byte
	region verbs.MemoryRegion
	// requests are this side's: keyWindow key requests, and then as many keys to forget. later are keys to forget that
	// wait for room there.
	requests [2 * keyWindow]keyRequest
	later    []uint32
	known    map[uint32]*known
	// advertised are the regions that the peer knows, by their key. ended: the queue pair has ended, so the peer knows
	// none.
	advertised map[uint32]*region
	ended      bool
	// busy counts the open requests and the responses that have not left.
	busy int

	message message
	sends   [1]verbs.SendRequest
	receive [1]verbs.ReceiveRequest
	segment [1]verbs.Segment
}

// A keyRequest is a message that waits for a response.
type keyRequest struct {
	key             uint32
	address, length uint64
	// leaving: the send has not completed. open: the peer has not responded.
	leaving, open bool
}

// known is a region of the peer, with its places on the rails after the first once they have arrived.
type known struct {
	responded       bool
	address, length uint64
	places          [maxRails - 1]place
}

// open prepares to receive.
func (k *keys) open(q *queuePair) (err error) {
	k.memory = make([]byte, (keySends+keyReceives)*messageBytes)
	k.known, k.advertised = make(map[uint32]*known), make(map[uint32]*region)
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
	// Nothing arrives on the other rails. A flushed receive there shows a failure.
	for rail := keyRail + 1; rail < len(q.pairs); rail++ {
		k.receive[0] = verbs.ReceiveRequest{ID: uint64(q.place)<<32 | receiveKind}
		if _, err := q.pairs[rail].PostReceive(k.receive[:]); err != nil {
			return of(rail, err)
		}
	}
	return nil
}

// close frees what open allocated.
func (k *keys) close() error {
	if k.region == nil {
		return nil
	}
	return k.region.Deregister()
}

// slot returns the memory of a message; those to be sent come first.
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

// send sends message from a slot.
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

// outstanding returns how many of the requests in device.onOthers are key messages, and resets the number.
func (k *keys) outstanding() (n int) {
	n, k.busy = k.busy, 0
	return n
}

// find returns the places of the region that a request is for, or nil if they are not known. It then requests them.
func (k *keys) find(q *queuePair, r *verbs.SendRequest, length int) *known {
	at := k.known[r.RKey]
	if at == nil {
		k.requestKeys(q, r, length)
		return nil
	}
	if !at.responded || !bounds.Contains(at.address, at.length, r.RemoteAddress, uint64(length)) {
		return nil
	}
	return at
}

func (k *keys) requestKeys(q *queuePair, r *verbs.SendRequest, length int) {
	i := k.vacant(0)
	if i < 0 || k.ended {
		return
	}
	if len(k.known) >= maxKnown {
		for key, at := range k.known {
			if at.responded {
				delete(k.known, key)
			}
		}
	}
	k.known[r.RKey] = new(known)
	k.message = message{kind: request, key: r.RKey, address: r.RemoteAddress, length: uint64(length)}
	q.recordFailureIf(k.request(q, i))
}

// vacant returns a free index among the keyWindow requests from first on, or a negative number.
func (k *keys) vacant(first int) int {
	for i := first; i < first+keyWindow; i++ {
		if r := &k.requests[i]; !r.leaving && !r.open {
			return i
		}
	}
	return -1
}

// request sends message as the i-th request.
func (k *keys) request(q *queuePair, i int) error {
	k.requests[i] = keyRequest{key: k.message.key, address: k.message.address, length: k.message.length, leaving: true, open: true}
	return k.send(q, keyReceives+i)
}

// sent records that a message has left. The peer may then send the message that it responded to again.
func (k *keys) sent(q *queuePair, slot int) error {
	if slot < keyReceives {
		k.count(q, -1)
		return k.await(q, slot)
	}
	i := slot - keyReceives
	k.requests[i].leaving = false
	return k.requestDone(q, i)
}

// requestDone frees the i-th request if it is over.
func (k *keys) requestDone(q *queuePair, i int) error {
	if r := &k.requests[i]; r.leaving || r.open {
		return nil
	}
	k.count(q, -1)
	return k.forgetLater(q)
}

// received processes a received message.
func (k *keys) received(q *queuePair, rail int, c *verbs.Completion) error {
	i := int(c.ID & numberMask)
	if rail != keyRail {
		return protocolError("a message of %s over rail %d, where none is sent", errtext.Count(c.Bytes, "byte"), rail)
	}
	if k.ended {
		return nil
	}
	m := &k.message
	if err := m.decode(k.slot(keySends + i)[:min(int(c.Bytes), messageBytes)], len(q.pairs)); err != nil {
		return err
	}
	switch m.kind {
	case request:
		k.respond(q)
		return k.send(q, i)
	case forget:
		if at := k.known[m.key]; at != nil && at.responded {
			delete(k.known, m.key)
		}
		*m = message{kind: forgotten, key: m.key}
		return k.send(q, i)
	case response:
		if err := k.takeResponse(q); err != nil {
			return err
		}
	case forgotten:
		if err := k.confirmed(q); err != nil {
			return err
		}
	}
	return k.await(q, i)
}

// closeRequest returns the open request from first on that has a key, and closes it.
func (k *keys) closeRequest(first int, key uint32) (i int, err error) {
	for i := first; i < first+keyWindow; i++ {
		if r := &k.requests[i]; r.open && r.key == key {
			r.open = false
			return i, nil
		}
	}
	return 0, protocolError("a response of kind %d for key %#x, which was not requested", k.message.kind, key)
}

// takeResponse processes a response.
func (k *keys) takeResponse(q *queuePair) error {
	m := &k.message
	i, err := k.closeRequest(0, m.key)
	if err != nil {
		return err
	}
	if r := &k.requests[i]; m.count == 0 {
		// The key may be given to another region.
		delete(k.known, m.key)
	} else if !bounds.Contains(m.address, m.length, r.address, r.length) {
		return protocolError("a response about %s at %#x; the request was for %d at %#x", errtext.Count(m.length, "byte"), m.address, r.length, r.address)
	} else if at := k.known[m.key]; at != nil {
		*at = known{responded: true, address: m.address, length: m.length, places: m.places}
	}
	return k.requestDone(q, i)
}

// respond makes the response to a key request, and records that the peer knows the region then.
func (k *keys) respond(q *queuePair) {
	d, m := q.device, &k.message
	requested := *m
	*m = message{kind: response, key: requested.key, address: requested.address, length: requested.length}
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.regions.byRKey[requested.key]
	if r == nil {
		return
	}
	whole := r.Remote()
	if !bounds.Contains(whole.Address, whole.Length, requested.address, requested.length) || len(k.advertised)+len(k.later)+keyWindow >= maxAdvertised {
		return
	}
	m.address, m.length, m.count = whole.Address, whole.Length, len(q.pairs)-1
	for i, other := range r.rails[1:] {
		at := other.Remote()
		m.places[i] = place{at.Address, at.RKey}
	}
	if k.advertised[requested.key] != r {
		r.requesters = append(r.requesters, q)
	}
	k.advertised[requested.key] = r
}

// retract makes the peer forget a key of a region that has ended.
func (q *queuePair) retract(key uint32) {
	q.mu.Lock()
	if k := &q.keys; k.ended {
		q.device.forgotten(key)
	} else {
		delete(k.advertised, key)
		k.later = append(k.later, key)
		q.recordFailureIf(k.forgetLater(q))
	}
	q.mu.Unlock()
	q.sever()
}

// forgetLater sends the keys to forget, as far as there is room.
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

// confirmed records that the peer has forgotten a key.
func (k *keys) confirmed(q *queuePair) error {
	i, err := k.closeRequest(keyWindow, k.message.key)
	if err != nil {
		return err
	}
	q.device.forgotten(k.message.key)
	return k.requestDone(q, i)
}

// forgotten records that a peer does not remember a key any more.
func (d *device) forgotten(key uint32) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.regions.release(key)
}

// end records that the queue pair has ended, so the peer knows nothing any more.
func (k *keys) end(q *queuePair) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if k.ended {
		return
	}
	k.ended = true
	d := q.device
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, r := range k.advertised {
		r.requesters = slices.DeleteFunc(r.requesters, func(other *queuePair) bool { return other == q })
	}
	for _, key := range k.later {
		d.regions.release(key)
	}
	for i := keyWindow; i < len(k.requests); i++ {
		if r := &k.requests[i]; r.open {
			d.regions.release(r.key)
		}
	}
	k.advertised, k.later = nil, nil
}
