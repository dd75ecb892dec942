package verbstest

import (
	"errors"
	"fmt"

	"github.com/onesided/rma/verbs"
)

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

	todo, spare    []*posted // not yet carried out, and to be used again
	slots          []*posted
	data           []byte // gathered; for the time of one request
	late, lateData []byte // of a write, by a defect
	outstanding    int    // sends that count against MaxSends
	unanswered     int    // of these, carried out without a completion
	running        bool
}

func (c *card) pair(config verbs.QueuePairConfig) (*cardPair, error) {
	sends, _ := config.SendQueue.(*cardQueue)
	receives, _ := config.ReceiveQueue.(*cardQueue)
	if sends == nil || receives == nil || sends.card != c || receives.card != c {
		return nil, errors.New("card: a queue pair needs completion queues of its card")
	}
	if (sends.closed || receives.closed) && !c.broken("a closed queue takes queue pairs") {
		return nil, verbs.ErrClosed
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
	p.disconnect(verbs.ErrClosed, "a closed queue pair goes unnoticed")
	p.closed = true
	return nil
}

func (p *cardPair) Sever() {
	p.card.mu.Lock()
	defer p.card.mu.Unlock()
	if p.closed || p.state == verbs.StateError {
		return
	}
	p.disconnect(verbs.ErrDisconnected, "a severed connection goes unnoticed")
}

// disconnect ends the connection in order, of which a card with a defect says nothing to its peer.
func (p *cardPair) disconnect(err error, defect string) {
	if p.peer != nil && !p.card.broken(defect) {
		class := verbs.ErrDisconnected
		if p.card.broken("an orderly end is taken for a death") {
			class = verbs.ErrPeerGone
		}
		p.running = true // This side's requests are flushed. They do not meet a peer that has failed.
		p.peer.fail(class)
		p.running = false
	}
	p.fail(err)
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
	if known := verbs.Signalled | verbs.Inline | verbs.Fence; r.Flags&^known != 0 && !c.broken("unknown flags are ignored") {
		return fmt.Errorf("card: flags %#x", r.Flags)
	}
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
