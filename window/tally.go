package window

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/onesided/rma/epoch"
	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/scheduler"
)

// A counting fence serves ranks that do not all map each other's memory. It needs no responses. After its operations on
// a rank, a rank sends that rank a marker. In the Fence the ranks tell each other how many markers each has to wait
// for. So a Fence takes one message to each rank that was the target of operations, and one for each round of the
// barrier. If both go to the same rank, it is one message. The ranks of a host map each other and use memory. One of
// them takes part in the barrier for all: see job.Meeting. Their operations on each other's memory are done when the
// call has returned, or, if they were held, before they begin the Fence.
//
// The ranks do not end the Fence at the same time. An operation of the next epoch may reach a rank that still waits for
// markers of a third rank, or for responses into its window. It must not be applied before those have arrived:
//
//   - A packet has the number of the Fence that its sender has ended last. Its target postpones it until the target has
//     ended that Fence.
//   - A direct operation cannot be postponed by its target. If there were direct operations, and there are more than
//     two ranks, the Fence that ends their epoch waits for responses and sends no marker. If any rank has sent markers,
//     the first direct operation on a rank after that Fence waits until the rank has ended it: see gate. Between two
//     ranks everything is in order on one connection. But a packet is applied when progress comes to it, and a later
//     direct operation may overtake it. So with two ranks only an epoch with packets has a gate.
//   - Operations on mapped memory cannot be postponed either. If any rank has sent markers, a rank ends the Fence only
//     when all ranks of its host have what they wait for. It learns that through memory. A rank that waits for this has
//     sent its own markers and taken part in the barrier. So only ranks that wait for the same thing wait for it.
//
// The ranks that map each other have to be the hosts of the World, for all of its ranks. Otherwise a Fence waits for
// responses, and then for all ranks.
type tallies struct {
	// on is set if Fences count markers.
	on atomic.Bool
	// begun is the number of the last Fence that this rank has begun, and passed that of the last that it has ended.
	// gate is the number of the last Fence in which markers were sent. broken is set if no further Fence can end.
	begun, passed, gate atomic.Uint32
	broken              atomic.Bool
	// packets is set if this rank has sent or served packets since the last Fence.
	packets atomic.Bool
	// marks counts the markers of Fences with even and with odd numbers.
	marks [2]atomic.Uint32
	// marked is 1 + the last Fence for which each rank has sent a marker. It belongs to progress.
	marked []uint64
}

// Ranks of at most fewHosts hosts use counting fences also if they share cores. With more hosts a rank does better to
// run once in a Fence than once in each round.
const fewHosts = 8

// talliesSuit reports whether a counting fence is the faster one for this World.
func talliesSuit(w *job.World) bool {
	hosts, regular := w.Hosts()
	return hosts > 1 && regular && (hosts <= fewHosts || !w.Oversubscribed())
}

// fenceByTally completes this rank's operations and waits for the other ranks. If its context ends first, the next call
// continues it.
func (c *core) fenceByTally(ctx context.Context, call string, number uint32, assert Assert) error {
	c.tallies.begun.Store(number)
	if assert&NoPrecede == 0 {
		if err := c.markEpoch(ctx, call, number); err != nil {
			return err
		}
	}
	arrivals, anything, err := c.meeting.Tally(ctx, call, fenceCall(assert), number, func(rank int) bool {
		p := c.peers[rank].Load()
		return p != nil && p.deferred != nil && p.deferred.marked.Load()
	})
	if err != nil {
		return err
	}
	if err := c.awaitMarks(ctx, call, number, uint32(arrivals)); err != nil {
		return err
	}
	if err := c.settleRemote(ctx, call, everyone); err != nil {
		return err
	}
	if err := c.meeting.EndTally(ctx, call); err != nil {
		return err
	}
	if c.world.FailureCount() != 0 {
		// Other ranks have returned an error from this Fence.
		return c.anyFailure(call)
	}
	t := &c.tallies
	t.marks[number&1].Store(0)
	if packets := t.packets.Swap(false); anything && (packets || c.size > 2) {
		t.gate.Store(number)
	}
	_ = c.eachLink(everyone, func(_ int, p *peer) error { p.deferred.fenced(); return nil })
	t.passed.Store(number)
	// Postponed messages can be served now.
	c.world.TryAgain()
	return nil
}

// markEpoch sends what is queued and then a marker, or waits for responses.
func (c *core) markEpoch(ctx context.Context, call string, number uint32) error {
	var unmarked []int
	err := c.eachLink(everyone, func(rank int, p *peer) error {
		marked, err := p.deferred.mark(ctx, number)
		if !marked {
			unmarked = append(unmarked, rank)
		}
		return c.blame(call, rank, err)
	})
	if err != nil {
		return err
	}
	for _, rank := range unmarked {
		if err := c.peers[rank].Load().link.Flush(ctx, c.number); err != nil {
			return c.blame(call, rank, err)
		}
	}
	return nil
}

// mark sends what is queued and then a marker, if there is anything to mark. It reports false if responses have to be
// waited for instead.
func (d *deferred) mark(ctx context.Context, number uint32) (marked bool, err error) {
	for {
		left, marked, err := d.markNow(ctx, number)
		if err != nil || !left {
			return marked, err
		}
		if err := d.awaitGate(ctx); err != nil {
			return false, err
		}
	}
}

// markNow is mark that does not wait until the rank has ended a Fence. left reports whether operations remain for that.
func (d *deferred) markNow(ctx context.Context, number uint32) (left, marked bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.used || d.marked.Load() {
		return false, true, nil
	}
	for len(d.queue.Operations) > 0 {
		// Among more than two ranks direct operations are flushed. That takes longer still than their completion.
		if left, err = d.send(ctx, scheduler.End); left || err != nil {
			return left, false, err
		}
	}
	c := d.core
	if d.link.Mute() || d.flown && c.size > 2 {
		d.link.Push()
		return false, false, nil
	}
	d.expectDirect()
	if err := d.link.TellWithin(ctx, &job.Message{Kind: messageMark, Service: c.number, X: uint64(number), AfterReads: true}, nil); err != nil {
		return false, false, err
	}
	d.marked.Store(true)
	if d.link.Rank() != c.meeting.FirstTold() {
		// The first message of the barrier goes to that rank and takes the marker along.
		d.link.Post()
	}
	return false, true, nil
}

// fenced begins the next epoch.
func (d *deferred) fenced() {
	d.mu.Lock()
	d.used, d.flown = false, false
	d.marked.Store(false)
	d.mu.Unlock()
	d.learn()
}

// awaitMarks waits until arrivals markers of a Fence have arrived.
func (c *core) awaitMarks(ctx context.Context, call string, number, arrivals uint32) error {
	marks := &c.tallies.marks[number&1]
	if marks.Load() >= arrivals {
		return nil
	}
	if err := c.beginReading(ctx, call); err != nil {
		return err
	}
	defer c.endReading()
	wait := c.world.NewWaiter()
	defer wait.Finish()
	for marks.Load() < arrivals {
		if c.world.FailureCount() != 0 && marks.Load() < arrivals {
			return c.anyFailure(call)
		}
		if err := c.pause(ctx, call, &wait); err != nil {
			return awaited(ctx, err, "of the ranks that write here %d of %d have come", marks.Load(), arrivals)
		}
	}
	return nil
}

// mark counts a marker of another rank.
func (s *server) mark(from *job.Link, m *job.Message) error {
	t, number := &s.core.tallies, uint32(m.X)
	if ahead := number - t.passed.Load(); m.X > 1<<32-1 || ahead != 1 && ahead != 2 || t.marked[from.Rank()] == m.X+1 {
		return fmt.Errorf("mark of fence %d, the last was %d", m.X, t.passed.Load())
	}
	t.marked[from.Rank()] = m.X + 1
	t.marks[number&1].Add(1)
	return nil
}

// early reports whether a message is of the epoch after the Fence that this rank is in. Its sender cannot be further:
// if one rank has ended a Fence, every rank has begun it.
func (t *tallies) early(number uint64) (bool, error) {
	// begun is loaded before passed: a Fence that ends between the two loads was begun before the first.
	begun, passed := t.begun.Load(), t.passed.Load()
	switch {
	case !t.on.Load() || t.broken.Load() || number < 1<<32 && epoch.Reached(passed, uint32(number)):
		return false, nil
	case number == uint64(begun):
		return true, nil
	}
	return false, fmt.Errorf("message behind fence %d, this rank is behind %d", number, passed)
}

// early is tallies.early. A rank that has left ends no further Fence, but still serves messages.
func (c *core) early(number uint64) (bool, error) {
	early, err := c.tallies.early(number)
	return early && !c.world.Gone(c.rank), err
}

// A delay is a message of a rank that waits for a Fence. There is one for each rank, because later messages of the rank
// wait after it.
type delay struct {
	server  *server
	from    *job.Link
	message job.Message
	payload []byte
	ended   uint64
	try     func() (bool, error)
}

// putOff postpones a message until this rank has ended the Fence that the sender of the message has ended.
func (s *server) putOff(from *job.Link, m *job.Message, payload []byte, ended uint64) {
	d := s.delays[from.Rank()]
	if d == nil {
		d = &delay{server: s}
		d.try = d.goOn
		s.delays[from.Rank()] = d
	}
	d.from, d.message, d.payload, d.ended = from, *m, payload, ended
	from.Later(d.try)
}

func (d *delay) goOn() (bool, error) {
	s := d.server
	if s.ended.Load() {
		return true, fmt.Errorf("window: a message that waited for a fence: %w", ErrClosed)
	}
	if early, _ := s.core.early(d.ended); early {
		return false, nil
	}
	m := d.message
	return true, s.Serve(d.from, &m, d.payload)
}
