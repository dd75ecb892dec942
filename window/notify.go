package window

import (
	"context"
	"fmt"

	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/internal/job"
)

const putNotify = "PutNotify"

// PutNotify is [Window.Put] that also adds 1 to notification slot number slot of target when the bytes are in target's
// window. A slot that the window does not have (option [Notifications]) is an [ErrArgument].
//
// If target shares no memory with this rank, PutNotify sends at once. Before that it waits, without a context, for the
// lock or the post of target if Lock or Start has not. The wait ends with an error when target has failed or left. Two
// ranks that notify each other before either has posted wait for each other.
func (w *Window[T]) PutNotify(origin []T, target, displacement, slot int) error {
	return w.of().putNotify(kept(origin), len(origin), target, displacement, slot)
}

// WaitNotify waits until count notifications have arrived in a slot of this rank that no earlier WaitNotify or
// TestNotify has taken, and takes them. It needs no epoch. Several goroutines may wait for one slot: each notification
// is taken once.
//
// Any rank may send notifications. So WaitNotify returns a *world.PeerError as soon as any rank has failed, or all
// others have left, unless the notifications are there. It returns an ErrClosed when the window is closed
// meanwhile. If ctx ends first, WaitNotify returns its error and takes nothing.
func (w *Window[T]) WaitNotify(ctx context.Context, slot int, count uint64) error {
	return w.calls().WaitNotify(ctx, slot, count)
}

func (w *untyped) WaitNotify(ctx context.Context, slot int, count uint64) error {
	c := w.core
	if err := c.check(ctx, "WaitNotify"); err != nil {
		return err
	}
	defer c.endSpan("WaitNotify", c.world.BeginSpan())
	if err := c.checkJob("WaitNotify"); err != nil {
		return err
	}
	if err := c.checkSlot("WaitNotify", slot); err != nil {
		return err
	}
	if err := c.beginReading(ctx, "window.WaitNotify"); err != nil {
		return err
	}
	defer c.endReading()
	wait := c.world.NewWaiter()
	defer wait.Finish()
	for {
		if c.takeNotifications(slot, count) {
			return nil
		}
		if err := c.nobodyLeft(&wait); err != nil {
			if c.takeNotifications(slot, count) {
				return nil
			}
			return err
		}
		if err := c.pause(ctx, "window.WaitNotify", &wait); err != nil {
			return awaited(ctx, err, "slot %d has not got %s", slot, errtext.Count(count, "notification"))
		}
	}
}

// nobodyLeft returns an error if any rank has failed, or if every other rank has left.
func (c *core) nobodyLeft(wait *job.Waiter) error {
	if c.world.FailureCount() != 0 {
		return c.anyFailure("window.WaitNotify")
	}
	var lost error
	for rank := range c.size {
		if rank == c.rank {
			continue
		}
		if lost = wait.Lost("window.WaitNotify", rank); lost == nil {
			return nil
		}
	}
	return lost
}

// TestNotify is [Window.WaitNotify] that does not block. It reports whether it has taken count notifications.
func (w *Window[T]) TestNotify(slot int, count uint64) (bool, error) {
	return w.calls().TestNotify(slot, count)
}

func (w *untyped) TestNotify(slot int, count uint64) (bool, error) {
	c := w.core
	if c == nil {
		return false, unmade("TestNotify")
	}
	if err := c.checkJob("TestNotify"); err != nil {
		return false, err
	}
	if err := c.checkSlot("TestNotify", slot); err != nil {
		return false, err
	}
	if err := c.beginReading(noWait, "window.TestNotify"); err != nil {
		return false, err
	}
	defer c.endReading()
	c.world.Poll()
	if c.takeNotifications(slot, count) {
		return true, nil
	}
	if c.world.FailureCount() != 0 && !c.takeNotifications(slot, count) {
		return false, c.anyFailure("window.TestNotify")
	}
	return false, nil
}

// takeNotifications takes count notifications if that many have arrived. A slot whose count another process has lowered
// has none.
func (c *core) takeNotifications(slot int, count uint64) bool {
	for {
		taken := c.consumed[slot].Load()
		if there := c.own.control.slot(slot).Load() - taken; there < count || int64(there) < 0 {
			return false
		}
		if c.consumed[slot].CompareAndSwap(taken, taken+count) {
			c.world.RaceAcquire()
			return true
		}
	}
}

func (c *core) checkSlot(call string, slot int) error {
	if uint(slot) >= uint(c.hints.Slots) {
		return fmt.Errorf("window: %s: %w: notification slot %d, the window has %s, from 0 on (option Notifications)", call, ErrArgument, slot, errtext.Count(c.hints.Slots, "slot"))
	}
	return nil
}
