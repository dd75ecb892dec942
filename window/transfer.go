package window

import (
	"context"
	"fmt"

	"github.com/onesided/rma/world"
)

// Put writes origin to target's window from displacement on. origin belongs to
// the library until the epoch, flush or request that completes the Put returns.
func (w *Window[T]) Put(origin []T, target, displacement int) error {
	return w.put(kept(origin), len(origin), target, displacement)
}

// Get reads target's window from displacement on into result, which is valid
// when the epoch, flush or request that completes the Get has returned.
func (w *Window[T]) Get(result []T, target, displacement int) error {
	return w.get(kept(result), len(result), target, displacement)
}

// offset of an element in its window, in bytes.
func (v *view) offset(displacement int) uint64 { return uint64(displacement) << v.shift }

// failed is the error of an operation that could not be carried out: the peer's
// failure if it has failed, else the cause.
func (v *view) failed(op string, target, displacement, count int, cause error) error {
	if err := v.world.Failure(target); err != nil {
		cause = err
	}
	return &OpError{Op: op, Target: target, Displacement: displacement, Count: count, Cause: cause}
}

// A Request is an operation whose completion can be waited for by itself. Its
// zero value is complete. On mapped memory an operation is complete when its
// call returns.
type Request struct {
	link *world.Link
	mark world.Mark
}

// Wait returns when the operation's buffers are the program's again and its
// results are valid.
func (r Request) Wait(ctx context.Context) error {
	if r.link == nil {
		return nil
	}
	return r.link.Reach(ctx, r.mark)
}

// Test tells whether Wait would return at once.
func (r Request) Test() (bool, error) {
	if r.link == nil {
		return true, nil
	}
	return r.link.Reached(r.mark)
}

// request is the Request of the operation on target that has just been issued.
func (v *view) request(target int, err error) (Request, error) {
	if err != nil || !v.remote {
		return Request{}, err
	}
	p, err := v.peer(target)
	if err != nil || p.link == nil {
		return Request{}, err
	}
	return Request{p.link, p.link.Mark()}, nil
}

// RPut is Put with a request.
func (w *Window[T]) RPut(origin []T, target, displacement int) (Request, error) {
	return w.request(target, w.Put(origin, target, displacement))
}

// RGet is Get with a request.
func (w *Window[T]) RGet(result []T, target, displacement int) (Request, error) {
	return w.request(target, w.Get(result, target, displacement))
}

// RAccumulate is Accumulate with a request.
func (w *Window[T]) RAccumulate(op Op, origin []T, target, displacement int) (Request, error) {
	return w.request(target, w.Accumulate(op, origin, target, displacement))
}

// RGetAccumulate is GetAccumulate with a request.
func (w *Window[T]) RGetAccumulate(op Op, origin, result []T, target, displacement int) (Request, error) {
	return w.request(target, w.GetAccumulate(op, origin, result, target, displacement))
}

// PutNotify is Put, and when its bytes are in target's window adds 1 to target's
// notification slot.
func (w *Window[T]) PutNotify(origin []T, target, displacement, slot int) error {
	if err := w.checkSlot("PutNotify", slot); err != nil {
		return err
	}
	if err := w.putAny("PutNotify", kept(origin), len(origin), target, displacement); err != nil {
		return err
	}
	p, err := w.peer(target)
	if err != nil {
		return err
	}
	// The atomic add comes after the stores of the put: who sees the count
	// sees the bytes.
	if p.link != nil {
		return w.notifyRemote(p, slot)
	}
	p.control.slot(slot).Add(1)
	p.neighbor.Ring()
	return nil
}

// WaitNotify blocks until count notifications that no earlier WaitNotify or
// TestNotify took have arrived in this rank's slot, and takes them. Anyone in
// the job may send them, so it ends with a *world.PeerError as soon as any rank
// has failed and they are not there.
func (c *core) WaitNotify(ctx context.Context, slot int, count uint64) error {
	if err := c.checkSlot("WaitNotify", slot); err != nil {
		return err
	}
	wait := c.world.NewWaiter()
	defer wait.Finish()
	for {
		if c.takeNotifications(slot, count) {
			return nil
		}
		if c.closed.Load() {
			return fmt.Errorf("window: WaitNotify: %w", errClosed)
		}
		if err := c.nobodyLeft(&wait); err != nil && !c.takeNotifications(slot, count) {
			return err
		} else if err != nil {
			return nil
		}
		if err := wait.Pause(ctx); err != nil {
			return fmt.Errorf("window: WaitNotify of slot %d: %w", slot, err)
		}
	}
}

// nobodyLeft is an error if any rank has failed, or every other one has left.
func (c *core) nobodyLeft(wait *world.Waiter) error {
	if c.world.Failures() != 0 {
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

// TestNotify is WaitNotify that does not block: it tells whether it took count
// notifications.
func (c *core) TestNotify(slot int, count uint64) (bool, error) {
	if err := c.checkSlot("TestNotify", slot); err != nil {
		return false, err
	}
	c.world.Poll()
	return c.takeNotifications(slot, count), nil
}

func (c *core) takeNotifications(slot int, count uint64) bool {
	for {
		taken := c.consumed[slot].Load()
		if c.own.control.slot(slot).Load()-taken < count {
			return false
		}
		if c.consumed[slot].CompareAndSwap(taken, taken+count) {
			return true
		}
	}
}

func (c *core) checkSlot(call string, slot int) error {
	if uint(slot) >= uint(c.hints.slots) {
		return fmt.Errorf("window: %s: %w: notification slot %d, the window has %d (option Notifications)", call, ErrArgument, slot, c.hints.slots)
	}
	return nil
}
