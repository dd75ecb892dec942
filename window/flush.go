package window

import (
	"context"
	"fmt"
	"strings"

	"github.com/onesided/rma/internal/errtext"
)

// Flush returns when every operation of this rank on target is complete there, for
// everyone to see. It needs a lock on target.
func (w *untyped) Flush(ctx context.Context, target int) error {
	c := w.core
	if err := checkContext(ctx, "Flush"); err != nil {
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

// RFlush is Flush with a request: it has every operation of this rank on target so far on its way, and the request is
// complete when they are. So several ranks are flushed side by side, and a program computes, or issues the operations
// that come next, while it waits for those before. It needs a lock on target, and does not wait for it; like the
// operations it may wait for room on the way there, as long as target may be silent.
//
// MPI has no such call. Zounmevo, Zhao, Balaji, Gropp and Afsahi, "Nonblocking Epochs in MPI One-Sided Communication"
// (SC 2014), show what programs have of it.
func (w *untyped) RFlush(target int) (Request, error) {
	c := w.core
	const call = "window.RFlush"
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
	defer c.world.EndSpan("RFlush", c.world.BeginSpan())
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

// awaitFlush is Wait of RFlush's request.
func (r Request) awaitFlush(ctx context.Context) error {
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
			err = d.core.awaitWord(ctx, "waiting for an answer", rank, &d.core.granted[rank], r.late.ticket, d)
		default:
			err = d.askFlush(ctx, r.late)
		}
		if err != nil {
			return r.flushed("Request.Wait", err)
		}
	}
	return r.flushed("Request.Wait", d.link.Reach(ctx, r.mark, d.core.number))
}

// lookFlush is look for RFlush's request.
func (r Request) lookFlush() (done bool, how departure, err error) {
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
	case done || err != nil && !ours(err, context.Canceled):
		return done, how, r.flushed("Request.Test", err)
	case err != nil:
		how = unasked
	}
	return false, how, nil
}

// flushed ends the Wait or the Test of RFlush's request.
func (r Request) flushed(call string, err error) error {
	c, target := r.deferred.core, r.deferred.link.Rank()
	if err != nil {
		return c.blame("window."+call, target, err)
	}
	r.deferred.learn()
	return c.completedOf(call, target, true, r.generation)
}

// flushTarget completes the operations on a target that may be reached over a link, there or only at this rank.
func (c *core) flushTarget(ctx context.Context, call string, target int, there bool) error {
	p := c.peers[target].Load()
	if p == nil || p.link == nil {
		return nil
	}
	defer c.world.EndSpan(unqualified(call), c.world.BeginSpan())
	if there {
		return c.blame(call, target, p.deferred.flush(ctx))
	}
	return c.blame(call, target, p.deferred.settle(ctx))
}

// FlushAll is Flush of every rank that is locked.
func (w *untyped) FlushAll(ctx context.Context) error {
	c := w.core
	defer c.world.EndSpan("FlushAll", c.world.BeginSpan())
	return c.flushedAll(ctx, "window.FlushAll")
}

// FlushLocal returns when the buffers of the operations on target are the
// program's again and their results are valid. It needs a lock on target. Where
// the puts and accumulates are short it copies them, and does not wait for target.
func (w *untyped) FlushLocal(ctx context.Context, target int) error {
	c := w.core
	if err := checkContext(ctx, "FlushLocal"); err != nil {
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

// FlushLocalAll is FlushLocal of every rank that is locked.
func (w *untyped) FlushLocalAll(ctx context.Context) error {
	c := w.core
	defer c.world.EndSpan("FlushLocalAll", c.world.BeginSpan())
	return c.flushedAll(ctx, "window.FlushLocalAll")
}

// checkFlush says why target cannot be flushed now.
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

// flushed is the way of a flush that did not pass the short check.
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
	if err := checkContext(ctx, unqualified(call)); err != nil {
		return err
	}
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

// flushLocked completes the operations on the ranks that are locked, there or only at this rank.
func (c *core) flushLocked(ctx context.Context, call string, there bool) error {
	if there {
		return c.flushRemote(ctx, call, c.epochs.Passive)
	}
	return c.settleRemote(ctx, call, c.epochs.Passive)
}

// Sync makes this rank's own loads and stores of its part and the operations of
// all ranks one order: what this rank stored is seen by operations after it, and
// its loads see operations that are complete.
func (w *untyped) Sync() error {
	c := w.core
	if c.closed.Load() {
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

// unqualified is the name of a call without the package's.
func unqualified(call string) string { return strings.TrimPrefix(call, "window.") }
