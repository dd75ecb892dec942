package verbstest

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"

	"github.com/onesided/rma/verbs"
)

type cardQueue struct {
	card     *card
	capacity int
	waiting  []verbs.Completion
	overflow bool
}

func (c *card) CreateCompletionQueue(capacity int) (verbs.CompletionQueue, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, verbs.ErrClosed
	}
	if capacity < 1 {
		return nil, fmt.Errorf("card: a queue for %d completions", capacity)
	}
	return &cardQueue{card: c, capacity: capacity}, nil
}

func (q *cardQueue) Poll(into []verbs.Completion) int {
	q.card.mu.Lock()
	defer q.card.mu.Unlock()
	if q.card.broken("polling allocates") {
		q.waiting = slices.Clone(q.waiting)
	}
	n := copy(into, q.waiting)
	if q.card.broken("polling takes the newest first") {
		slices.Reverse(q.waiting)
		copy(into, q.waiting)
	}
	q.waiting = q.waiting[:copy(q.waiting, q.waiting[n:])]
	return n
}

func (q *cardQueue) Close() error { return nil }

func (q *cardQueue) add(p *cardPair, c verbs.Completion) {
	c.QueuePair = p.number
	if p.closed {
		return
	}
	if len(q.waiting) >= q.capacity {
		if !q.overflow && !p.card.broken("a queue overflows in silence") {
			q.overflow = true
			for _, other := range p.card.pairs {
				if other.config.SendQueue == q || other.config.ReceiveQueue == q {
					other.fail(errors.New("card: completion queue overflow"))
				}
			}
		}
		return
	}
	q.waiting = append(q.waiting, c)
	if p.card.broken("every fifth completion comes twice") && c.ID%5 == 0 && len(q.waiting) < q.capacity {
		q.waiting = append(q.waiting, c)
	}
	p.card.bell.ring()
}

// posted is a send request with copies of what belongs to the caller.
type posted struct {
	verbs.SendRequest
	segments [8]verbs.Segment
	inline   [100]byte
}

type cardPair struct {
	card            *card
	number          uint32
	config          verbs.QueuePairConfig
	sends, receives *cardQueue
	peer            *cardPair
	state           verbs.State
	err             error
	closed          bool

	todo, spare []*posted // not yet carried out, and to be used again
	slots       []*posted
	data        []byte // gathered; for the time of one request
	outstanding int    // sends that count against MaxSends
	unanswered  int    // of these, carried out without a completion
	running     bool
}

func (c *card) pair(config verbs.QueuePairConfig) (*cardPair, error) {
	sends, _ := config.SendQueue.(*cardQueue)
	receives, _ := config.ReceiveQueue.(*cardQueue)
	if sends == nil || receives == nil || sends.card != c || receives.card != c {
		return nil, errors.New("card: a queue pair needs completion queues of its card")
	}
	if config.MaxSends < 0 || config.MaxReceives < 0 {
		return nil, fmt.Errorf("card: %d sends and %d receives", config.MaxSends, config.MaxReceives)
	}
	if config.MaxSends == 0 {
		config.MaxSends = 128
	}
	if config.MaxReceives == 0 {
		config.MaxReceives = 128
	}
	p := &cardPair{card: c, number: c.next(), config: config, sends: sends, receives: receives}
	if c.broken("all queue pairs have one number") {
		p.number = 1
	}
	c.pairs = append(c.pairs, p)
	return p, nil
}

func (p *cardPair) Number() uint32 { return p.number }

func (p *cardPair) State() verbs.State {
	p.card.mu.Lock()
	defer p.card.mu.Unlock()
	return p.state
}

func (p *cardPair) Err() error {
	p.card.mu.Lock()
	defer p.card.mu.Unlock()
	return p.err
}

func (p *cardPair) Close() error {
	p.card.mu.Lock()
	defer p.card.mu.Unlock()
	if p.closed {
		return nil
	}
	p.fail(verbs.ErrClosed)
	p.closed = true
	if p.peer != nil && !p.card.broken("a closed queue pair goes unnoticed") {
		p.peer.fail(verbs.ErrPeerGone)
	}
	return nil
}

// fail puts the queue pair in the error state and flushes it.
func (p *cardPair) fail(err error) {
	if p.state == verbs.StateError {
		return
	}
	p.state, p.err = verbs.StateError, err
	if p.card.broken("nothing is flushed") {
		return
	}
	for _, r := range p.todo {
		p.sends.add(p, verbs.Completion{ID: r.ID, Status: verbs.StatusFlushed, Opcode: r.Opcode})
	}
	for _, r := range p.slots {
		p.receives.add(p, verbs.Completion{ID: r.ID, Status: verbs.StatusFlushed, Opcode: verbs.OpReceive})
	}
	p.todo, p.slots, p.outstanding = nil, nil, 0
	p.card.bell.ring()
	if p.peer != nil {
		p.peer.run()
	}
}

func (p *cardPair) PostReceive(requests []verbs.ReceiveRequest) (int, error) {
	p.card.mu.Lock()
	defer p.card.mu.Unlock()
	if p.closed {
		return 0, verbs.ErrClosed
	}
	for i, r := range requests {
		if len(r.Segments) > 8 {
			return i, fmt.Errorf("card: %d segments, at most 8", len(r.Segments))
		}
		if len(p.slots) >= p.config.MaxReceives && !p.card.broken("queues are never full") {
			return i, verbs.ErrQueueFull
		}
		if p.state == verbs.StateError {
			p.receives.add(p, verbs.Completion{ID: r.ID, Status: verbs.StatusFlushed, Opcode: verbs.OpReceive})
			continue
		}
		p.slots = append(p.slots, p.keep(verbs.SendRequest{ID: r.ID, Segments: r.Segments}))
	}
	if p.peer != nil {
		p.peer.run()
	}
	return len(requests), nil
}

func (p *cardPair) PostSend(requests []verbs.SendRequest) (int, error) {
	p.card.mu.Lock()
	defer p.card.mu.Unlock()
	defer p.run()
	if p.closed && !p.card.broken("a closed queue pair takes requests") {
		return 0, verbs.ErrClosed
	}
	for i, r := range requests {
		if err := p.card.malformed(r); err != nil {
			return i, err
		}
		if p.outstanding >= p.config.MaxSends && !p.card.broken("queues are never full") {
			if p.card.broken("a full queue tells the wrong count") {
				return 0, verbs.ErrQueueFull
			}
			return i, verbs.ErrQueueFull
		}
		p.outstanding++
		p.todo = append(p.todo, p.keep(r))
	}
	if p.card.broken("a batch is reordered") && len(requests) > 2 {
		n := len(p.todo)
		p.todo[n-1], p.todo[n-2] = p.todo[n-2], p.todo[n-1]
	}
	return len(requests), nil
}

// keep copies what belongs to the caller into a request that is used again
// once it has been carried out.
func (p *cardPair) keep(r verbs.SendRequest) *posted {
	if len(p.spare) == 0 {
		p.spare = append(p.spare, new(posted))
	}
	kept := p.spare[len(p.spare)-1]
	p.spare = p.spare[:len(p.spare)-1]
	kept.SendRequest = r
	if p.card.broken("the caller's segments are kept") {
		return kept
	}
	kept.Segments = kept.segments[:copy(kept.segments[:], r.Segments)]
	if r.Flags&verbs.Inline != 0 && !p.card.broken("inline data is read late") {
		kept.segments[0].Memory = gather(kept.inline[:0], r.Segments)
		kept.Segments = kept.segments[:1]
	}
	return kept
}

// next takes the next request off the list.
func (p *cardPair) next() {
	p.spare = append(p.spare, p.todo[0])
	p.todo = p.todo[:copy(p.todo, p.todo[1:])]
}

func (c *card) malformed(r verbs.SendRequest) error {
	if r.Opcode > verbs.OpCompareSwap {
		return fmt.Errorf("card: opcode %d", r.Opcode)
	}
	if len(r.Segments) > 8 {
		return fmt.Errorf("card: %d segments, at most 8", len(r.Segments))
	}
	n := length(r.Segments)
	if n > maxCardMessage && !c.broken("messages have no limit") {
		return fmt.Errorf("card: %d bytes, at most %d", n, maxCardMessage)
	}
	if r.Opcode >= verbs.OpFetchAdd && (len(r.Segments) != 1 || n != 8) {
		return errors.New("card: an atomic has one segment of 8 bytes")
	}
	if r.Flags&verbs.Inline != 0 && (n > 100 || r.Opcode >= verbs.OpRDMARead) {
		return fmt.Errorf("card: opcode %d with %d bytes cannot be inline", r.Opcode, n)
	}
	return nil
}

// run carries out what can be.
func (p *cardPair) run() {
	if p.running {
		return
	}
	p.running = true
	defer func() { p.running = false }()
	for len(p.todo) > 0 && p.state != verbs.StateConnecting {
		r := p.todo[0]
		if p.state == verbs.StateError {
			p.next()
			p.outstanding--
			p.sends.add(p, verbs.Completion{ID: r.ID, Status: verbs.StatusFlushed, Opcode: r.Opcode})
			continue
		}
		status, wait := p.carryOut(r.SendRequest)
		if wait || len(p.todo) == 0 {
			return
		}
		p.next()
		if status != verbs.StatusSuccess {
			if !(p.card.broken("failures of unsignalled requests are silent") && r.Flags&verbs.Signalled == 0) {
				p.sends.add(p, verbs.Completion{ID: r.ID, Status: status, Opcode: r.Opcode})
			}
			if !p.card.broken("the queue pair goes on after an error") {
				p.fail(status)
			}
			if p.card.broken("an error fails every queue pair") {
				for _, other := range p.card.pairs {
					other.fail(status)
				}
			}
			continue
		}
		if r.Flags&verbs.Signalled == 0 && !p.card.broken("unsignalled requests complete") {
			p.unanswered++
			if p.card.broken("unsignalled requests are not counted") {
				p.outstanding, p.unanswered = p.outstanding-1, p.unanswered-1
			}
			continue
		}
		p.outstanding -= p.unanswered + 1
		p.unanswered = 0
		p.sends.add(p, verbs.Completion{ID: r.ID, Opcode: r.Opcode})
	}
}

func length(segments []verbs.Segment) (n int) {
	for _, s := range segments {
		n += len(s.Memory)
	}
	return n
}

func gather(data []byte, segments []verbs.Segment) []byte {
	for _, s := range segments {
		data = append(data, s.Memory...)
	}
	return data
}

func (p *cardPair) scatter(segments []verbs.Segment, data []byte) {
	if p.card.broken("the last byte is dropped") && len(data) > 1000 {
		data = data[:len(data)-1]
	}
	for _, s := range segments {
		data = data[copy(s.Memory, data):]
	}
}

// local checks the segments of this side.
func (c *card) local(segments []verbs.Segment, right verbs.Access) bool {
	for _, s := range segments {
		r := c.keys[s.LKey]
		if r == nil || r.access&right != right || !within(r.memory, s.Memory) {
			return c.broken("segments are not checked")
		}
	}
	return true
}

func (p *cardPair) carryOut(r verbs.SendRequest) (status verbs.Status, wait bool) {
	n := length(r.Segments)
	var needs verbs.Access
	if r.Opcode >= verbs.OpRDMARead {
		needs = verbs.LocalWrite
	}
	if r.Flags&verbs.Inline == 0 && !p.card.local(r.Segments, needs) {
		return verbs.StatusLocalProtection, false
	}
	there := p.peer.card
	if !there.broken("what comes is not heard") {
		there.heard++
	}
	if p.peer.state == verbs.StateError {
		return verbs.StatusRetryExceeded, false
	}
	if r.Opcode == verbs.OpRDMAWriteImmediate && len(p.peer.slots) == 0 && !p.card.broken("immediate data needs no receive") {
		return 0, true
	}
	switch r.Opcode {
	case verbs.OpSend, verbs.OpSendImmediate:
		p.data = gather(p.data[:0], r.Segments)
		return p.deliver(r, p.data)
	case verbs.OpRDMAWrite, verbs.OpRDMAWriteImmediate:
		target, ok := there.find(r.RemoteAddress, r.RKey, n, verbs.RemoteWrite)
		if !ok && p.card.broken("a write is placed before it is checked") {
			if target, ok = there.find(r.RemoteAddress, r.RKey, n, ^verbs.Access(0)); ok {
				copy(target, gather(p.data[:0], r.Segments))
			}
			return verbs.StatusRemoteAccess, false
		}
		if !ok {
			return verbs.StatusRemoteAccess, false
		}
		p.data = gather(p.data[:0], r.Segments)
		p.scatter([]verbs.Segment{{Memory: target}}, p.data)
		if r.Opcode == verbs.OpRDMAWriteImmediate {
			return p.deliver(r, nil)
		}
	case verbs.OpRDMARead:
		target, ok := there.find(r.RemoteAddress, r.RKey, n, verbs.RemoteRead)
		if !ok {
			return verbs.StatusRemoteAccess, false
		}
		p.data = append(p.data[:0], target...)
		p.scatter(r.Segments, p.data)
	default:
		target, ok := there.find(r.RemoteAddress, r.RKey, 8, verbs.RemoteAtomic)
		if !ok {
			return verbs.StatusRemoteAccess, false
		}
		if r.RemoteAddress%8 != 0 {
			return verbs.StatusRemoteInvalid, false
		}
		put64(r.Segments[0].Memory, p.atomic(word(target, 0), r))
	}
	return verbs.StatusSuccess, false
}

func (p *cardPair) atomic(w *uint64, r verbs.SendRequest) uint64 {
	if p.card.broken("atomics are not atomic") && r.Opcode == verbs.OpFetchAdd {
		old := atomic.LoadUint64(w)
		p.card.mu.Unlock()
		runtime.Gosched()
		p.card.mu.Lock()
		atomic.StoreUint64(w, old+r.Operand)
		return old
	}
	if r.Opcode == verbs.OpFetchAdd {
		return atomic.AddUint64(w, r.Operand) - r.Operand
	}
	for {
		old := atomic.LoadUint64(w)
		if old != r.Compare || atomic.CompareAndSwapUint64(w, old, r.Operand) {
			return old
		}
	}
}

// deliver gives a message, or the notice of a write with immediate, to the
// peer's next receive.
func (p *cardPair) deliver(r verbs.SendRequest, data []byte) (verbs.Status, bool) {
	q := p.peer
	if len(q.slots) == 0 {
		return 0, !p.card.broken("immediate data needs no receive")
	}
	slot := q.slots[0]
	q.slots = q.slots[:copy(q.slots, q.slots[1:])]
	defer func() { q.spare = append(q.spare, slot) }()
	c := verbs.Completion{ID: slot.ID, Opcode: verbs.OpReceive, Bytes: uint32(len(data))}
	if r.Opcode != verbs.OpSend {
		c.Opcode, c.Immediate = verbs.OpReceiveImmediate, r.Immediate
		if p.card.broken("immediate data is lost") {
			c.Immediate = 0
		}
	}
	if r.Opcode == verbs.OpRDMAWriteImmediate {
		c.Bytes = uint32(length(r.Segments))
		q.receives.add(q, c)
		return verbs.StatusSuccess, false
	}
	if !q.card.local(slot.Segments, verbs.LocalWrite) {
		q.receives.add(q, verbs.Completion{ID: slot.ID, Status: verbs.StatusLocalProtection})
		q.fail(verbs.StatusLocalProtection)
		return verbs.StatusRemoteOperation, false
	}
	if len(data) > length(slot.Segments) {
		if p.card.broken("a long message is cut") {
			data = data[:length(slot.Segments)]
		} else {
			if p.card.broken("a long message spills") {
				copy(q.card.from(slot.Segments[0].Memory), data)
			}
			q.receives.add(q, verbs.Completion{ID: slot.ID, Status: verbs.StatusLocalLength})
			q.fail(verbs.StatusLocalLength)
			return verbs.StatusRemoteInvalid, false
		}
	}
	if p.card.broken("sends overtake") && len(q.slots) > 0 {
		p.scatter(q.slots[0].Segments, data)
	} else {
		p.scatter(slot.Segments, data)
	}
	q.receives.add(q, c)
	return verbs.StatusSuccess, false
}
