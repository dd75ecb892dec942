package window

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/onesided/rma/epoch"
	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/scheduler"
)

// A Fence among ranks that do not all map each other's memory needs no answers: behind what
// it has sent to a rank a rank sends a mark, and the ranks tell each other in the Fence how
// many marks each has to wait for. So a Fence is a message to each rank that was sent
// something to, and one a round of the barrier, which is the same where it is the same rank.
// The ranks of a host, which do map each other, tell each other through memory, and one of
// them takes part in the barrier for all: see job.Meeting. What they do to each other's
// memory themselves is done when the call has returned, or, where it was held back, before
// they begin the Fence.
//
// But the ranks do not end the Fence at once: what a rank does in the next epoch may come to
// one that still waits for marks, from a third, or for answers into its window. It must not
// be done before those have come:
//
//   - A packet carries the number of the Fence that its sender has ended last, and is put
//     off until its target has ended that.
//   - What goes direct cannot be put off. Where operations have, and there are more than
//     two ranks, the Fence that closes their epoch waits for answers instead of sending a
//     mark; and where any rank has sent marks, the first direct operation on a rank after
//     that Fence waits until the rank has ended it: see gate. Between two ranks all goes one
//     way, in order; but what has come in a packet is done when progress comes to it, which
//     what goes direct behind it overtakes: there, only an epoch with packets has a gate.
//   - What ranks do to memory that they map cannot be put off either. Where any rank has
//     sent marks, a rank ends the Fence only when all of its host have what they wait for:
//     it hears of that through memory. A rank that waits for this has sent its own marks and
//     taken part in the barrier: so nobody waits for it, but those who wait for the same.
//
// Those who map each other have to be the hosts of the World, for all of its ranks. Else a
// Fence waits for answers, and then for all ranks.
type tallies struct {
	// on tells that Fences are of this kind.
	on atomic.Bool
	// begun is the number of the last Fence that this rank has begun, passed of the last
	// that it has ended, gate of the last of those in which marks were sent. broken tells
	// that there will be no further one.
	begun, passed, gate atomic.Uint32
	broken              atomic.Bool
	// packets tells that this rank has sent or served packets since the last.
	packets atomic.Bool
	// marks counts those of the Fences of a parity.
	marks [2]atomic.Uint32
	// marked is 1 + the last Fence that each rank has sent a mark for; it belongs to progress.
	marked []uint64
}

// The ranks of fewHosts fence by tally also where they share cores. Of more, each does better
// to run once in a Fence than each round.
const fewHosts = 8

// talliesSuit tells whether a Fence by tally suits a rank.
func talliesSuit(w *job.World) bool {
	hosts, regular := w.Hosts()
	return hosts > 1 && regular && (hosts <= fewHosts || !w.Crowded())
}

// fenceByTally completes this rank's operations and meets the others. It is repeated when
// its context has cut it short.
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
		// Others have given this Fence up.
		return c.anyFailure(call)
	}
	t := &c.tallies
	t.marks[number&1].Store(0)
	if packets := t.packets.Swap(false); anything && (packets || c.size > 2) {
		t.gate.Store(number)
	}
	_ = c.eachLink(everyone, func(_ int, p *peer) error { p.deferred.fenced(); return nil })
	t.passed.Store(number)
	// What was put off until now.
	c.world.TryAgain()
	return nil
}

// markEpoch sends what is queued with a mark behind it, or waits for answers.
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

// mark sends what is queued with a mark behind it if there is anything to mark. It is not
// marked if answers have to be waited for.
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

// markNow is mark that does not wait for the rank to end a Fence, and tells whether something is
// left for that.
func (d *deferred) markNow(ctx context.Context, number uint32) (left, marked bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.used || d.marked.Load() {
		return false, true, nil
	}
	for len(d.queue.Operations) > 0 {
		// Among more than two ranks direct operations are flushed, which takes longer still than
		// their completion.
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
		// To that one the first round of the barrier goes with it.
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

// awaitMarks waits until so many marks of a Fence have come.
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

// mark counts a mark of another rank.
func (s *server) mark(from *job.Link, m *job.Message) error {
	t, number := &s.core.tallies, uint32(m.X)
	if ahead := number - t.passed.Load(); m.X > 1<<32-1 || ahead != 1 && ahead != 2 || t.marked[from.Rank()] == m.X+1 {
		return fmt.Errorf("mark of fence %d, the last was %d", m.X, t.passed.Load())
	}
	t.marked[from.Rank()] = m.X + 1
	t.marks[number&1].Add(1)
	return nil
}

// early tells whether a message is of the epoch behind the Fence that this rank is in. Its
// sender cannot be further: every rank has begun a Fence that one has ended.
func (t *tallies) early(number uint64) (bool, error) {
	// In this order: a Fence that ends in between was begun.
	begun, passed := t.begun.Load(), t.passed.Load()
	switch {
	case !t.on.Load() || t.broken.Load() || number < 1<<32 && epoch.Reached(passed, uint32(number)):
		return false, nil
	case number == uint64(begun):
		return true, nil
	}
	return false, fmt.Errorf("message behind fence %d, this rank is behind %d", number, passed)
}

// early is tallies.early. A rank that has left ends no further Fence, but serves.
func (c *core) early(number uint64) (bool, error) {
	early, err := c.tallies.early(number)
	return early && !c.world.Gone(c.rank), err
}

// A delay is a message of a rank that waits for a Fence: one of each, since what the rank has
// sent behind it waits too.
type delay struct {
	server  *server
	from    *job.Link
	message job.Message
	payload []byte
	ended   uint64
	try     func() (bool, error)
}

// putOff has a message served when this rank has come to its epoch, behind the Fence that
// its sender has ended.
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
