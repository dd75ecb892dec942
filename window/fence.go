package window

import (
	"context"
	"errors"
	"fmt"

	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/world"
)

// Fence closes an epoch on all ranks and opens the next one. It returns when every rank has called it: the operations
// of all ranks are then complete at their targets. With [NoSucceed] it opens no epoch. Either all ranks assert
// NoPrecede or none does, and likewise NoSucceed.
//
// If another rank has called Close instead, or ranks disagree on NoPrecede or NoSucceed, every rank gets a
// *MismatchError. Later Fences of the window return it, too. Calls of different windows are not compared, nor with the
// collectives of the World, since goroutines of a rank may make both at once. If one rank calls Fence of a window and
// another rank calls Fence of another window, Barrier or [Allocate], both wait. The warning of each names the other:
// see world.WithStall.
//
// If ctx ends first, Fence returns its error. The same Fence, with the same assertions, continues.
//
// If not all ranks share memory, they may end a Fence at different times. An operation of the next epoch on a rank that
// shares no memory and has not ended the Fence is deferred until the rank has. A long accumulate, a PutNotify, or an
// operation when many are queued may wait for this in its call.
//
// If a rank fails during a Fence, the Fence may succeed on some ranks and return a *world.PeerError on others. A rank
// on which it has failed takes part in no further Fence of the window.
func (w *Window[T]) Fence(ctx context.Context, asserts ...Assert) error {
	return w.calls().Fence(ctx, asserts...)
}

func (w *untyped) Fence(ctx context.Context, asserts ...Assert) error {
	c := w.core
	if err := c.check(ctx, "Fence"); err != nil {
		return err
	}
	defer c.endSpan("Fence", c.world.BeginSpan())
	if err := c.checkJob("Fence"); err != nil {
		return err
	}
	assert := together(asserts)
	c.mu.Lock()
	number, err := c.epochs.BeginFence(assert)
	broken := c.broken
	if err == nil {
		c.readers.Add(1)
		defer c.endReading()
	}
	c.mu.Unlock()
	if err != nil {
		return errtext.Errorf("window: %w", err)
	}
	c.settleClosed()
	if err = broken; err == nil {
		c.notePlace(number)
		err = c.fence(ctx, number, assert)
	}
	failed, mismatch := job.Failed(err), c.mismatch(ctx, "Fence", err)
	if failed != nil && c.world.FailureCount() == 0 {
		// The other ranks learn of a failure by themselves, but not of a rank that has left.
		c.meeting.GiveUp(number, failed.Rank, c.tallies.on.Load())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		c.epochs.EndFence(assert)
		c.opened("Fence", -1)
		return c.completed("Fence", -1, true)
	}
	switch {
	case broken != nil:
	case failed != nil:
		c.broken = &job.PeerError{Rank: failed.Rank, Op: "window.Fence", Cause: failed.Cause}
	case mismatch != nil:
		c.broken, err = mismatch, mismatch
	default:
		c.epochs.SuspendFence()
		return closedIn("Fence", err)
	}
	c.tallies.broken.Store(true)
	c.epochs.FailFence()
	return err
}

// fence completes this rank's operations and waits in the barrier.
func (c *core) fence(ctx context.Context, number uint32, assert Assert) error {
	if c.tallies.on.Load() {
		return c.fenceByTally(ctx, "window.Fence", number, assert)
	}
	if c.remote && assert&NoPrecede == 0 {
		if err := c.flushRemote(ctx, "window.Fence", everyone); err != nil {
			return err
		}
	}
	if err := c.meeting.Meet(ctx, "window.Fence", fenceCall(assert), number); err != nil {
		return err
	}
	if c.world.FailureCount() != 0 {
		// Other ranks have given up this Fence.
		return c.anyFailure("window.Fence")
	}
	return nil
}

// Close frees the window. It is collective, and returns when every rank has called it, or one has failed or left before
// it did. If an epoch is open or a call is in progress, Close returns an error and changes nothing. An exposure to a
// rank that has failed counts as closed.
//
// If another rank has called Fence instead, every rank gets a *MismatchError. After any error except that of an open
// epoch or of [ErrServed], and after the failure of a rank, the window is closed. Its memory then stays until the World
// is closed, because other ranks may still use it. Calls of other ranks that wait for this one return a
// *world.PeerError whose cause is [ErrDeparted]. After a Close that was not interrupted a second one returns an
// [ErrClosed], unlike that of a World.
func (w *Window[T]) Close() error { return w.calls().Close() }

func (w *untyped) Close() error { return w.CloseContext(context.Background()) }

// CloseContext is [Window.Close] that waits for other ranks only until ctx ends. Its error then wraps that of ctx, and
// names a rank that it waited for, if known. The window takes no other calls from then on.
//
// Its memory stays, because other ranks may still use it and may complete their Close. Another Close or CloseContext
// continues, and frees the memory at its end. So does Close of the World.
func (w *Window[T]) CloseContext(ctx context.Context) error { return w.calls().CloseContext(ctx) }

func (w *untyped) CloseContext(ctx context.Context) error {
	c := w.core
	if err := c.check(ctx, "Close"); err != nil {
		return err
	}
	defer c.endSpan("Close", c.world.BeginSpan())
	c.mu.Lock()
	unfinished := c.unfinished
	c.unfinished = false
	c.mu.Unlock()
	if unfinished {
		return c.finishClose(ctx)
	}
	c.mu.Lock()
	if !c.seats.close() {
		c.mu.Unlock()
		return fmt.Errorf("window: Close: %w", ErrServed)
	}
	var kept error
	err := c.epochs.Close()
	if errors.Is(err, ErrEpochOpen) && c.world.FailureCount() != 0 {
		c.mu.Unlock()
		kept = c.endLostExposure()
		c.mu.Lock()
		err = c.epochs.Close()
	}
	var calls string
	if errors.Is(err, ErrEpochOpen) {
		c.seats.open()
		calls = c.whoOpened()
	}
	c.mu.Unlock()
	switch {
	case calls != "":
		return with(errtext.Errorf("window: %w; opened by %s", err, calls), kept)
	case err != nil:
		return with(errtext.Errorf("window: %w", err), kept)
	}
	c.shut()
	return with(c.finishClose(ctx), kept)
}

// with returns err, joined with the errors that an interrupted call has kept, if there are any.
func with(err, kept error) error {
	if kept == nil {
		return err
	}
	return errors.Join(err, kept)
}

// endLostExposure ends an exposure to a rank that has failed, also if the Post that began it was interrupted. It returns
// what the Post that continues would have returned, without the failures.
func (c *core) endLostExposure() (kept error) {
	c.mu.Lock()
	group, notified, suspended := c.epochs.SuspendedPost()
	// No other Post continues it meanwhile.
	suspended = suspended && c.epochs.BeginPost(group) == nil
	c.mu.Unlock()
	if suspended {
		_, err := c.pollExposure(group)
		c.mu.Lock()
		if err == nil {
			c.epochs.SuspendPost(notified)
		} else {
			c.epochs.EndPost()
			kept = c.posting.takeOthers()
		}
		c.mu.Unlock()
	}
	// If the Post is still suspended, this changes nothing.
	_, _ = c.test()
	return kept
}

// finishClose waits for the other ranks and frees the window. It is called again after a context has ended it early.
func (c *core) finishClose(ctx context.Context) error {
	c.mu.Lock()
	abandoned, broken := c.abandoned, c.broken
	if !abandoned {
		c.readers.Add(1)
		defer c.endReading()
	}
	c.mu.Unlock()
	switch {
	case abandoned:
		return fmt.Errorf("window: Close: %w", ErrClosed)
	case c.visited != nil:
		return c.visited.leave(c)
	case broken != nil:
		// This rank has given up a Fence. For the other ranks that Fence has the number in the barrier that this Close
		// would use.
		c.tellParting()
		return nil
	}
	number := c.epochs.LastFence() + 1
	c.notePlace(number)
	err := c.meetLast(ctx, number)
	if mismatch := c.mismatch(ctx, "Close", err); mismatch != nil {
		c.tellParting()
		return mismatch
	}
	var notPosted error
	if err == nil {
		notPosted, err = c.unposted(ctx)
	}
	if job.Failed(err) != nil {
		c.tellParting()
		return nil
	}
	if err != nil {
		unfinished := ctx.Err() != nil || interrupted(ctx, err)
		c.mu.Lock()
		c.unfinished = unfinished
		c.mu.Unlock()
		return closedIn("Close", err)
	}
	c.withdraw()
	defer c.world.Working()()
	return errors.Join(notPosted, c.release())
}

// closedMeanwhile replaces an error which says that the World was closed by ErrClosed.
func closedMeanwhile(err error) error {
	if job.Is(err, world.ErrClosed) {
		return ErrClosed
	}
	return err
}

// closedIn is closedMeanwhile for the error of a call, whose name it adds.
func closedIn(call string, err error) error {
	if job.Is(err, world.ErrClosed) {
		return fmt.Errorf("window: %s: %w", call, ErrClosed)
	}
	return err
}

// meetLast waits in the barrier for the last time.
func (c *core) meetLast(ctx context.Context, number uint32) error {
	if !c.tallies.on.Load() {
		return c.meeting.Meet(ctx, "window.Close", callClose, number)
	}
	_, _, err := c.meeting.Tally(ctx, "window.Close", callClose, number, func(int) bool { return false })
	return err
}
