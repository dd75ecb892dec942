package window

import (
	"context"
	"errors"
	"fmt"

	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/world"
)

// Fence returns when every rank has called it. It closes an epoch: the operations
// of every rank are complete at their targets; and opens the next, unless NoSucceed
// is asserted. All ranks assert NoPrecede and NoSucceed, or none does.
//
// Where another rank has called Close instead, or has asserted those otherwise, every rank gets a *MismatchError, and
// the window has no Fence any more.
//
// Where not all ranks share memory they end a Fence one after the other. An operation of the
// next epoch on a rank that has not ended it, and whose memory is not shared, is kept until it
// has; an accumulate of many bytes, a PutNotify, or one where many are queued may wait for that
// in its call.
//
// When a rank fails, the Fence that is in progress may have ended on some ranks and
// fail on others. A rank where one has failed takes part in no further Fence of the
// window.
func (w *untyped) Fence(ctx context.Context, asserts ...Assert) error {
	c := w.core
	defer c.world.EndSpan("Fence", c.world.BeginSpan())
	if err := checkContext(ctx, "Fence"); err != nil {
		return err
	}
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
	failed, mismatch := lostIn(err), c.mismatch(ctx, "Fence", err)
	if failed != nil && c.world.FailureCount() == 0 {
		// Of one that has failed others hear, but not of one that has left.
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

// lostIn is what an error says of a rank that has failed or left, nil if nothing.
func lostIn(err error) *job.PeerError {
	if err == nil {
		return nil
	}
	var failed *job.PeerError
	errors.As(err, &failed)
	return failed
}

// fence completes this rank's operations and meets the others.
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
		// Others have given this Fence up.
		return c.anyFailure("window.Fence")
	}
	return nil
}

// Close frees the window. It is collective: it returns when every rank has called it,
// or one has failed or left before it did. Where another rank has called Fence instead, every rank gets a *MismatchError.
// With an epoch open it is an error and
// changes nothing. After any other error, and where a rank has failed, the window is
// closed, but its memory stays until the World is closed, because others may still use
// it, and those that wait for this rank are told that it has parted: ErrDeparted. An exposure to a rank
// that has failed counts as closed.
func (w *untyped) Close() error { return w.CloseContext(context.Background()) }

// CloseContext is Close that waits for other ranks only while ctx lasts. If that ends first it returns an error that wraps
// ctx's and names the rank that it waits for, if that is known. The window takes no other calls from then on, but its memory stays, because
// others may still use it, and may come to the end of their Close. Another Close or CloseContext goes on where this one stopped,
// and frees the memory at its end; so does that of the World.
func (w *untyped) CloseContext(ctx context.Context) error {
	c := w.core
	if err := checkContext(ctx, "Close"); err != nil {
		return err
	}
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
	err := c.epochs.Close()
	if errors.Is(err, ErrEpochOpen) && c.world.FailureCount() != 0 {
		c.mu.Unlock()
		// An exposure to one that has failed has ended, as soon as anybody looks.
		_, _ = c.test()
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
		return errtext.Errorf("window: %w; opened by %s", err, calls)
	case err != nil:
		return errtext.Errorf("window: %w", err)
	}
	c.shut()
	return c.finishClose(ctx)
}

// finishClose waits for the others and frees the window. It is called again after a context has cut it short.
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
		// This rank has told others of a Fence that it gave up, which for them is
		// the meeting that it would close by.
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
	var flaw error
	if err == nil {
		flaw, err = c.unposted(ctx)
	}
	if failed := lostIn(err); failed != nil {
		c.tellParting()
		return nil
	}
	if err != nil {
		cut := ctx.Err() != nil
		c.mu.Lock()
		c.unfinished = cut
		c.mu.Unlock()
		return closedIn("Close", err)
	}
	c.withdraw()
	defer c.world.Working()()
	return errors.Join(flaw, c.release())
}

// closedMeanwhile gives ErrClosed in the place of an error which says that the World was closed.
func closedMeanwhile(err error) error {
	if errors.Is(err, world.ErrClosed) {
		return ErrClosed
	}
	return err
}

// closedIn is closedMeanwhile for what the call returns.
func closedIn(call string, err error) error {
	if errors.Is(err, world.ErrClosed) {
		return fmt.Errorf("window: %s: %w", call, ErrClosed)
	}
	return err
}

// meetLast meets the others for the last time.
func (c *core) meetLast(ctx context.Context, number uint32) error {
	if !c.tallies.on.Load() {
		return c.meeting.Meet(ctx, "window.Close", callClose, number)
	}
	_, _, err := c.meeting.Tally(ctx, "window.Close", callClose, number, func(int) bool { return false })
	return err
}
