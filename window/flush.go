package window

import (
	"context"
	"fmt"
	"strings"

	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/internal/job"
)

// Flush waits until every operation of this rank on target is complete there and visible to all ranks. It needs an
// epoch of Lock or LockAll, and returns an [ErrNotLocked] without one. If target has failed, Flush returns a
// *world.PeerError. If target has rejected operations, it returns a *world.RejectionError. If ctx ends first, Flush
// returns its error and may be called again.
func (w *Window[T]) Flush(ctx context.Context, target int) error { return w.calls().Flush(ctx, target) }

func (w *untyped) Flush(ctx context.Context, target int) error {
	c := w.core
	if err := c.check(ctx, "Flush"); err != nil {
		return err
	}
	if uint(target) < uint(c.size) && c.epochs.Passive(target) && c.world.FailureCount() == 0 {
		c.settle()
		publish()
		if c.remote {
			if err := c.flushTarget(ctx, "window.Flush", target, true); err != nil {
				return err
			}
		}
		return c.completed("Flush", target, true)
	}
	return c.flushed(ctx, "window.Flush", target)
}

// RFlush starts a Flush of target and returns a [Request] for it. The request is complete when every operation of this
// rank on target that was issued before RFlush is complete there. Several targets can be flushed at the same time.
// Meanwhile the program can compute, or issue further operations.
//
// RFlush needs an epoch of Lock or LockAll. It does not wait for a reply of target. Like an operation it may wait for
// room on the way to target, at most for the time of world.WithPeerTimeout.
//
// MPI has no such call. Zounmevo, Zhao, Balaji, Gropp and Afsahi, "Nonblocking Epochs in MPI One-Sided Communication"
// (SC 2014), show what programs gain by it.
func (w *Window[T]) RFlush(target int) (Request, error) { return w.calls().RFlush(target) }

func (w *untyped) RFlush(target int) (Request, error) {
	c := w.core
	const call = "window.RFlush"
	if c == nil {
		return Request{}, unmade("RFlush")
	}
	if uint(target) >= uint(c.size) || !c.epochs.Passive(target) {
		if err := c.checkFlush(call, target); err != nil {
			return Request{}, err
		}
	}
	c.settle()
	publish()
	if c.world.FailureCount() != 0 {
		if err := c.targetFailure(call, target); err != nil {
			return Request{}, err
		}
	}
	p := c.peers[target].Load()
	if p == nil || p.link == nil {
		return Request{}, c.completed("RFlush", target, true)
	}
	defer c.endSpan("RFlush", c.world.BeginSpan())
	r := Request{deferred: p.deferred, before: p.deferred.joined(), flush: true, generation: c.nextGeneration()}
	var late lateFlush
	var how departure
	var err error
	if r.mark, how, err = p.deferred.beginFlush(context.Background(), r.before, &late); err != nil {
		return Request{}, c.blame(call, target, err)
	}
	if how != departed {
		r.late = &lateFlush{ticket: late.ticket}
	}
	return r, nil
}

// awaitFlush is Wait for a request of RFlush.
func (r Request) awaitFlush(ctx context.Context, call string) error {
	d := r.deferred
	for how := departed; r.late != nil; {
		var err error
		switch r.mark, how, err = d.beginFlush(ctx, r.before, r.late); {
		case err != nil:
		case how == departed:
			r.late = nil
		case how == staying:
			err = d.awaitLeave(ctx)
		case how == riding:
			rank := d.link.Rank()
			err = d.core.awaitWord(ctx, "", "waiting for an answer", rank, &d.core.granted[rank], r.late.ticket, d)
		default:
			err = d.askFlush(ctx, r.late)
		}
		if err != nil {
			return r.flushed(call, err)
		}
	}
	return r.flushed(call, d.link.Reach(ctx, r.mark, d.core.number))
}

// lookFlush is look for a request of RFlush.
func (r Request) lookFlush(call string) (done bool, how departure, err error) {
	d := r.deferred
	if how = departed; r.late != nil {
		r.mark, how, err = d.beginFlush(noWait, r.before, r.late)
	}
	if err == nil && how == departed {
		done, err = d.link.Reached(r.mark, d.core.number)
	} else {
		d.core.world.Poll()
	}
	switch {
	case done || err != nil && !job.Is(err, context.Canceled):
		return done, how, r.flushed(call, err)
	case err != nil:
		how = unasked
	}
	return false, how, nil
}

// flushed ends Wait or Test of a request of RFlush.
func (r Request) flushed(call string, err error) error {
	c, target := r.deferred.core, r.deferred.link.Rank()
	if err != nil {
		return c.blame(call, target, err)
	}
	r.deferred.learn()
	return c.completedOf(unqualified(call), target, true, r.generation)
}

// flushTarget completes the operations on a target that may be reached over a link. If there is set, they are complete
// at the target, otherwise at this rank only.
func (c *core) flushTarget(ctx context.Context, call string, target int, there bool) error {
	p := c.peers[target].Load()
	if p == nil || p.link == nil {
		return nil
	}
	defer c.endSpan(unqualified(call), c.world.BeginSpan())
	if there {
		return c.blame(call, target, p.deferred.flush(ctx))
	}
	return c.blame(call, target, p.deferred.settle(ctx))
}

// FlushAll is [Window.Flush] of every rank that is locked.
func (w *Window[T]) FlushAll(ctx context.Context) error { return w.calls().FlushAll(ctx) }

func (w *untyped) FlushAll(ctx context.Context) error {
	c := w.core
	if err := c.check(ctx, "FlushAll"); err != nil {
		return err
	}
	defer c.endSpan("FlushAll", c.world.BeginSpan())
	return c.flushedAll(ctx, "window.FlushAll")
}

// FlushLocal waits until the buffers of all operations on target belong to the program again and their results are
// valid. It needs an epoch of Lock or LockAll. Short puts and accumulates are copied: for them FlushLocal does not wait
// for target, unless this rank has yet to acquire the lock. If ctx ends first, FlushLocal returns its error and may be
// called again.
func (w *Window[T]) FlushLocal(ctx context.Context, target int) error {
	return w.calls().FlushLocal(ctx, target)
}

func (w *untyped) FlushLocal(ctx context.Context, target int) error {
	c := w.core
	if err := c.check(ctx, "FlushLocal"); err != nil {
		return err
	}
	if uint(target) < uint(c.size) && c.epochs.Passive(target) && c.world.FailureCount() == 0 {
		if c.remote {
			if err := c.flushTarget(ctx, "window.FlushLocal", target, false); err != nil {
				return err
			}
		}
		return c.completed("FlushLocal", target, false)
	}
	return c.flushed(ctx, "window.FlushLocal", target)
}

// FlushLocalAll is [Window.FlushLocal] of every rank that is locked.
func (w *Window[T]) FlushLocalAll(ctx context.Context) error { return w.calls().FlushLocalAll(ctx) }

func (w *untyped) FlushLocalAll(ctx context.Context) error {
	c := w.core
	if err := c.check(ctx, "FlushLocalAll"); err != nil {
		return err
	}
	defer c.endSpan("FlushLocalAll", c.world.BeginSpan())
	return c.flushedAll(ctx, "window.FlushLocalAll")
}

// checkFlush returns an error if target cannot be flushed now.
func (c *core) checkFlush(call string, target int) error {
	if err := c.checkRank(unqualified(call), target); err != nil {
		return err
	}
	c.mu.Lock()
	err := c.epochs.CheckFlush(unqualified(call), target)
	c.mu.Unlock()
	if err != nil {
		return errtext.Errorf("window: %w", err)
	}
	return nil
}

// flushed is the slow path of a flush, for calls that fail the check of the fast path.
func (c *core) flushed(ctx context.Context, call string, target int) error {
	if err := c.checkFlush(call, target); err != nil {
		return err
	}
	c.settle()
	publish()
	if err := c.targetFailure(call, target); err != nil {
		return err
	}
	there := call == "window.Flush"
	if err := c.flushTarget(ctx, call, target, there); err != nil {
		return err
	}
	return c.completed(unqualified(call), target, there)
}

func (c *core) flushedAll(ctx context.Context, call string) error {
	c.mu.Lock()
	err := c.epochs.CheckFlushAll(unqualified(call))
	c.mu.Unlock()
	if err != nil {
		return errtext.Errorf("window: %w", err)
	}
	c.settle()
	publish()
	there := call == "window.FlushAll"
	if c.remote {
		if err := c.flushLocked(ctx, call, there); err != nil {
			return err
		}
	}
	if c.world.FailureCount() == 0 {
		return c.completed(unqualified(call), -1, there)
	}
	for target := range c.size {
		if c.epochs.Passive(target) {
			if err := c.targetFailure(call, target); err != nil {
				return err
			}
		}
	}
	return c.completed(unqualified(call), -1, there)
}

// flushLocked completes the operations on the locked ranks: at the ranks if there is set, otherwise at this rank only.
func (c *core) flushLocked(ctx context.Context, call string, there bool) error {
	if there {
		return c.flushRemote(ctx, call, c.epochs.Passive)
	}
	return c.settleRemote(ctx, call, c.epochs.Passive)
}

// Sync orders the loads and stores of this rank in its own part with the operations of all ranks. Operations after Sync
// see what this rank has stored before. Loads after Sync see operations that were complete before.
//
// Fence, Post, Wait and WaitNotify order them, too, and so do Test and TestNotify that return true, and Barrier of the
// World. Sync is needed only where ranks order themselves by other means, such as a pipe, or where a rank polls for a value.
func (w *Window[T]) Sync() error { return w.calls().Sync() }

func (w *untyped) Sync() error {
	c := w.core
	switch {
	case c == nil:
		return unmade("Sync")
	case c.closed.Load():
		return fmt.Errorf("window: Sync: %w", ErrClosed)
	}
	publish()
	return nil
}

func (c *core) checkRank(call string, rank int) error {
	if uint(rank) >= uint(c.size) {
		return fmt.Errorf("window: %s: %w: %d, %s", call, ErrRank, rank, errtext.Allowed(c.size-1))
	}
	return nil
}

// unqualified returns the name of a call without that of the package.
func unqualified(call string) string { return strings.TrimPrefix(call, "window.") }
