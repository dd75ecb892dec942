package window

import (
	"context"
	"errors"

	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/verbs"
)

// Put writes origin to target's window from displacement on. origin belongs to
// the library until the epoch, flush or request that completes the Put returns.
func (w *Window[T]) Put(origin []T, target, displacement int) error {
	return w.view.put(kept(origin), len(origin), target, displacement)
}

// Get reads target's window from displacement on into result, which is valid
// when the epoch, flush or request that completes the Get has returned.
func (w *Window[T]) Get(result []T, target, displacement int) error {
	return w.view.get(kept(result), len(result), target, displacement)
}

// offset of an element in its window, in bytes.
func (v *view) offset(displacement int) uint64 { return uint64(displacement) << v.shift }

// failed is the error of an operation that could not be carried out: the peer's
// failure if it has failed, else the cause.
func (v *view) failed(op string, target, displacement, count int, cause error) error {
	if err := v.world.Failure(target); err != nil {
		cause = err
	} else if errors.Is(cause, verbs.ErrPeerGone) {
		// The World has not heard of it yet.
		cause = &job.PeerError{Rank: target, Cause: cause}
	}
	return &OpError{Op: op, Target: target, Displacement: displacement, Count: count, Cause: cause}
}

// A Request is an operation, or a flush, whose completion can be waited for by itself. Its
// zero value is complete. On mapped memory an operation is complete when its
// call returns.
type Request struct {
	deferred *deferred
	// before is how often the queue had been sent before the operation joined it.
	before uint64
	// flush: it is that of RFlush, complete at mark, or if late is not nil where that tells, once it has begun.
	// generation is what the debug mode has it complete.
	flush      bool
	mark       job.Mark
	late       *lateFlush
	generation uint64
	// read is what the debug mode has of a get.
	read *access
}

// Wait returns when the operation's buffers are the program's again and its
// results are valid; of [Window.RFlush] when the operations before it are complete at the target.
func (r Request) Wait(ctx context.Context) error {
	if err := checkContext(ctx, "Request.Wait"); err != nil || r.deferred == nil {
		return err
	}
	d := r.deferred
	defer d.core.world.EndSpan("Request.Wait", d.core.world.BeginSpan())
	if r.flush {
		return r.awaitFlush(ctx)
	}
	for {
		mark, how, err := d.sent(ctx, r.before)
		switch {
		case err != nil:
			return err
		case how == staying:
			err = d.awaitLeave(ctx)
		case how == riding:
			err = d.awaitGrant(ctx)
		default:
			if err := d.link.Reach(ctx, mark, d.core.number); err != nil {
				return err
			}
			d.core.hasRead(r.read)
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// Test tells whether Wait would return at once. It makes progress, but yields to no other
// goroutine.
func (r Request) Test() (bool, error) {
	if r.deferred == nil {
		return true, nil
	}
	done, how, err := r.look()
	if done || err != nil {
		return done, err
	}
	lost := r.lost(how)
	if lost == nil {
		return false, nil
	}
	// What the target did before counts, and is at hand by now.
	r.deferred.core.world.Poll()
	done, further, err := r.look()
	if done || err != nil || further != how {
		return done, err
	}
	return false, lost
}

// look tells whether the request is complete, and if not how far it has come: unasked where that takes room which there is not.
func (r Request) look() (done bool, how departure, err error) {
	if r.flush {
		return r.lookFlush()
	}
	d := r.deferred
	mark, how, err := d.sent(noWait, r.before)
	switch {
	case err == nil && how == departed:
		if done, err = d.link.Reached(mark, d.core.number); done && err == nil {
			d.core.hasRead(r.read)
		}
		return done, how, err
	case ours(err, context.Canceled):
		how, err = unasked, nil
	}
	d.core.world.Poll()
	return false, how, err
}

// lost says why a request that has come so far will never be complete, nil while it may be: the window is closed, its target serves
// no more, or what has not departed waits for a target that has closed the window, or has left without its post.
func (r Request) lost(how departure) error {
	const call = "window.Request.Test"
	d, c, target := r.deferred, r.deferred.core, r.deferred.link.Rank()
	c.readers.Add(1)
	defer c.endReading()
	if c.closed.Load() {
		return errtext.Errorf("%s: %w", errtext.Call("window", call), ErrClosed)
	}
	if err := c.world.Unserved(call, target); err != nil || how == departed || how == unasked {
		return err
	}
	switch gone := c.world.Gone(target); {
	case c.parted(target):
		return &job.PeerError{Rank: target, Op: call, Cause: ErrDeparted}
	case gone && !d.posted():
		return c.world.LeftBy(call, target)
	}
	return nil
}

// request is the Request of the operation on count elements of target that has just been
// issued. Nothing of nothing is queued.
func (v *view) request(count, target int, err error) (Request, error) {
	if err != nil || count == 0 || !v.remote {
		return Request{}, err
	}
	p, err := v.peer(target)
	if err != nil || p.link == nil {
		return Request{}, err
	}
	return Request{deferred: p.deferred, before: p.deferred.joined()}, nil
}

// RPut is Put with a request.
func (w *Window[T]) RPut(origin []T, target, displacement int) (Request, error) {
	err := w.Put(origin, target, displacement)
	if err == nil {
		w.view.ownBuffers(bytesOf(origin))
	}
	return w.view.request(len(origin), target, err)
}

// RGet is Get with a request.
func (w *Window[T]) RGet(result []T, target, displacement int) (Request, error) {
	err := w.Get(result, target, displacement)
	var read *access
	if err == nil {
		read = w.view.ownBuffers(bytesOf(result))
	}
	r, err := w.view.request(len(result), target, err)
	if r.read = read; r.deferred == nil {
		w.view.hasRead(read)
	}
	return r, err
}

// RAccumulate is Accumulate with a request.
func (w *Window[T]) RAccumulate(op Op, origin []T, target, displacement int) (Request, error) {
	return w.view.request(len(origin), target, w.Accumulate(op, origin, target, displacement))
}

// RGetAccumulate is GetAccumulate with a request.
func (w *Window[T]) RGetAccumulate(op Op, origin, result []T, target, displacement int) (Request, error) {
	err := w.GetAccumulate(op, origin, result, target, displacement)
	if err == nil {
		w.view.ownBuffers(bytesOf(result))
	}
	return w.view.request(len(result), target, err)
}
