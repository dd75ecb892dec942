package window

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/onesided/rma/epoch"
	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/internal/prefetch"
	"github.com/onesided/rma/world"
)

// newCore makes this rank's end of a window. It serves messages of other ranks from now on.
func newCore(w *job.World, number uint32, s settings, p *part, allocated bool) (*core, error) {
	c := &core{
		world: w, now: w.Now, rank: w.Rank(), size: w.Size(), hints: s, number: number,
		epochs:   epoch.New(w.Rank(), w.Size()),
		views:    make(map[any]interface{ part(rank int) *target }),
		peers:    make([]atomic.Pointer[peer], w.Size()),
		granted:  make([]atomic.Uint32, w.Size()),
		tickets:  make([]atomic.Uint32, w.Size()),
		posted:   make([]atomic.Uint32, w.Size()),
		consumed: make([]atomic.Uint64, s.Slots),
		here:     make([]atomic.Bool, w.Size()),
		release:  p.release,
	}
	c.lockWord, c.host = lockWordOf(c.rank), c
	c.watch = newWatch(w)
	c.locking = w.Attached(lockingKey{}, func() any { return new(locking) }).(*locking)
	// Memory of the programs may be reached by system calls, which have no atomic instructions. This must be known
	// before the first message arrives.
	c.native = s.SingleElement && allocated
	neighbor, err := w.Neighbor(c.rank)
	if err != nil {
		return nil, err
	}
	own := controlOver(p.control, layoutOf(c.size, s.Seats, uint64(len(p.memory)), s.Slots))
	c.own = &peer{control: own, data: p.memory, neighbor: neighbor, block: p.control}
	if p.lent != nil {
		c.lodge(p.lent)
	}
	if c.own.data == nil {
		c.own.data = []byte{}
	}
	c.peers[c.rank].Store(c.own)
	c.beginAccesses()
	c.meeting = w.NewMeeting(c.number, p.control, int(own.tallyAt), func(rank int) ([]byte, error) {
		p, err := c.peer(rank)
		if err != nil {
			return nil, err
		}
		return p.block, nil
	})
	for rank := range c.size {
		c.remote = c.remote || !w.Mapped(rank)
	}
	c.tallies.marked = make([]uint64, c.size)
	c.server = newServer(c)
	stopForgetting, stopBreaking := w.OnFailureAtOnce(c.forget), w.OnFailure(func(e *job.PeerError) { c.server.failed(e.Rank) })
	c.stopListening = func() { stopForgetting(); stopBreaking() }
	c.stopWaitingForEnd = w.OnClose(c.abandon)
	return c, nil
}

// open completes the window with the descriptions of all ranks.
func (c *core) open(all []description, how reach, allocated bool) {
	c.exposed, c.reach = make([]exposure, c.size), how
	c.tallies.on.Store(!slices.ContainsFunc(all, func(d description) bool { return !d.tallies }))
	for rank := range all {
		c.exposed[rank] = c.expose(rank, &all[rank])
		c.here[rank].Store(all[rank].process == process)
		c.far = c.far || prefetch.Works && !c.hints.Immediate && all[rank].bytes >= farBytes
	}
	c.useCards(all, allocated)
	if how == reachMessages {
		c.remote = true
		c.world.KeepProgress()
	}
}

// shut has operations rejected. It returns when the calls that look at control blocks have ended: those in a Fence and
// those outside of epochs.
func (c *core) shut() {
	c.stopListening()
	if !c.closed.Swap(true) {
		c.account()
	}
	c.tallies.broken.Store(true)
	c.viewsMu.Lock()
	for rank := range c.size {
		c.hide(rank)
	}
	c.viewsMu.Unlock()
	c.awaitReaders()
}

// abandon closes a window whose World is closed, before its memory is freed. Operations that are deferred in an epoch
// which is still open are lost, which is an error.
func (c *core) abandon() error {
	unsent := -1
	orderly := c.world.Orderly() && !c.closed.Load()
	if orderly {
		// Otherwise a goroutine may be stuck with the mutex of a queue.
		unsent = c.unsent()
	}
	c.mu.Lock()
	var err error
	if orderly {
		err = c.leftOpen(unsent)
	}
	c.epochs.Abandon()
	c.abandoned = true
	c.mu.Unlock()
	c.seats.revoke()
	c.shut()
	c.endAccesses()
	c.applyHeld()
	c.server.end()
	c.meeting.Close()
	return err
}

// leftOpen returns the error of a World that is closed while an epoch is open. unsent is a rank with operations that
// were not sent, or -1. In the debug mode an open epoch alone is an error. The caller holds the mutex of epochs. No
// rank has failed, because the failure could be the reason otherwise.
func (c *core) leftOpen(unsent int) error {
	const call = "Close of the World"
	if calls := c.whoOpened(); calls != "" {
		return &MisuseError{What: "an epoch is left open", First: calls, FirstRank: c.rank, Second: call, SecondRank: c.rank}
	}
	if err := c.epochs.LeftOpen(call); err != nil && unsent >= 0 {
		return errtext.Errorf("window: operations on rank %d are lost: %w", unsent, err)
	}
	return nil
}

// unsent returns the first rank with unsent operations, or -1.
func (c *core) unsent() int {
	return c.firstQueue(func(d *deferred) bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return len(d.queue.Operations) > 0
	})
}

// unposted is called when all ranks have closed the window. notPosted is the error of a rank that has not made the Post
// that a Start named it for. The post of a rank arrives before its response does, and before the rank leaves.
// All ranks may have met through other ranks before that.
func (c *core) unposted(ctx context.Context) (notPosted, err error) {
	rank := c.firstQueue(func(d *deferred) bool {
		if d.posted() {
			return false
		}
		// An earlier call has returned the rejections of the rank.
		flushed := d.link.Flush(ctx, c.number)
		switch {
		case d.posted() || c.world.Failure(d.link.Rank()) != nil:
			return false
		case interrupted(ctx, flushed) || job.Is(flushed, world.ErrClosed):
			err = errtext.Errorf("window: Close: %w", flushed)
		}
		return true
	})
	if rank < 0 || err != nil {
		return nil, err
	}
	return fmt.Errorf("window: Close: %w: rank %d has closed the window without the Post that the last Start of rank %d was for; operations of that epoch, if there were any, are lost", ErrNotPosted, rank, c.rank), nil
}

// firstQueue returns the first rank for whose queue is returns true, or -1.
func (c *core) firstQueue(is func(d *deferred) bool) int {
	for rank := range c.peers {
		if p := c.peers[rank].Load(); p != nil && p.deferred != nil && is(p.deferred) {
			return rank
		}
	}
	return -1
}

// withdraw undoes newCore.
func (c *core) withdraw() {
	c.stopListening()
	c.stopWaitingForEnd()
	c.endAccesses()
	c.server.end()
	c.meeting.Close()
}

// endSpan reports a call of the window that World.BeginSpan has begun.
func (c *core) endSpan(call string, begun time.Duration) { c.world.EndSpanOf(c.number, call, begun) }
