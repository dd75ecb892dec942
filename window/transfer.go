package window

import (
	"context"
	"errors"

	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/verbs"
)

// Put writes origin to target's window, from element displacement on. It needs an access epoch to target. origin
// belongs to the library until the call that completes the Put returns: a flush, or the end of the epoch.
//
// An error of Put on a window that was made is an *[OpError], or a *[MisuseError] in debug mode. If the call is wrong,
// the cause is [ErrNoEpoch], [ErrRank], [ErrRange], [ErrArgument] (a negative displacement), [ErrReadOnly] or
// [ErrClosed], and nothing was written. If target has failed, it is a *world.PeerError. If target cannot be reached, it
// is the error of the connection, such as verbs.ErrShortage. The other operations return these errors, and those that
// their docs name.
func (w *Window[T]) Put(origin []T, target, displacement int) error {
	return w.view.put(kept(origin), len(origin), target, displacement)
}

// Get reads target's window into result, from element displacement on. It needs an access epoch to target. result is
// valid when the call that completes the Get has returned: a flush, or the end of the epoch. Until then its content is
// undefined. Errors are those of [Window.Put].
func (w *Window[T]) Get(result []T, target, displacement int) error {
	return w.view.get(kept(result), len(result), target, displacement)
}

// offset returns the offset of an element in its window, in bytes.
func (v *view) offset(displacement int) uint64 { return uint64(displacement) << v.shift }

// failed returns the error of an operation that could not be done. Its cause is the failure of target if target
// has failed, otherwise cause.
func (v *view) failed(op string, target, displacement, count int, cause error) error {
	if err := v.world.Failure(target); err != nil {
		cause = err
	} else if errors.Is(cause, verbs.ErrPeerGone) {
		// The World does not know of the failure yet.
		cause = &job.PeerError{Rank: target, Cause: cause}
	}
	return &OpError{Op: op, Target: target, Displacement: displacement, Count: count, Cause: cause}
}

// A Request stands for an operation or a flush, whose completion can be waited for by itself. The zero Request is
// complete. An operation on mapped memory is complete when its call returns. A Request need not be waited for: the end
// of the epoch completes it, too.
//
// A Request is a value: copies stand for the same operation. It may be waited for several times, from any goroutine,
// and also when the epoch has ended.
type Request struct {
	deferred *deferred
	// before counts how often the queue had been sent when the operation joined it.
	before uint64
	// flush is set for the request of RFlush. It is complete at mark, or, if late is not nil, at the mark in late once
	// the flush has begun. generation is the last generation of accesses that the debug mode retires with it.
	flush      bool
	mark       job.Mark
	late       *lateFlush
	generation uint64
	// read is the debug mode's record of a Get.
	read *access
}

// Wait waits until the buffers of the operation belong to the program again and its results are valid. For a request of
// [Window.RFlush] it waits until the operations issued before RFlush are complete at the target. If ctx ends first,
// Wait returns its error and may be called again.
func (r Request) Wait(ctx context.Context) error {
	if err := checkContext(ctx, "Request.Wait"); err != nil || r.deferred == nil {
		return err
	}
	c := r.deferred.core
	defer c.endSpan("Request.Wait", c.world.BeginSpan())
	return r.await(ctx, "window.Request.Wait")
}

// await is Wait of a request that has a queue, as part of a call.
func (r Request) await(ctx context.Context, call string) error {
	if r.flush {
		return r.awaitFlush(ctx, call)
	}
	d := r.deferred
	for over := false; !over; {
		mark, how, err := d.sent(ctx, r.before)
		switch {
		case err != nil:
		case how == staying:
			err = d.awaitLeave(ctx)
		case how == riding:
			err = d.awaitGrant(ctx)
		default:
			err, over = d.link.Reach(ctx, mark, d.core.number), true
		}
		if err != nil {
			return d.core.blame(call, d.link.Rank(), err)
		}
	}
	d.core.hasRead(r.read)
	return nil
}

// Test reports whether Wait would return at once. It makes progress, but does not yield to other goroutines. If the
// operation can never complete, Test returns an error.
func (r Request) Test() (bool, error) { return r.test("window.Request.Test") }

// test is Test as part of a call.
func (r Request) test(call string) (bool, error) {
	if r.deferred == nil {
		return true, nil
	}
	done, how, err := r.look(call)
	if done || err != nil {
		return done, err
	}
	lost := r.lost(call, how)
	if lost == nil {
		return false, nil
	}
	// What the target did before it failed or left counts. It has arrived, and Poll takes it.
	r.deferred.core.world.Poll()
	done, further, err := r.look(call)
	if done || err != nil || further != how {
		return done, err
	}
	return false, lost
}

// look reports whether the request is complete, and otherwise how far it has come. how is unasked if there was no room
// to send it.
func (r Request) look(call string) (done bool, how departure, err error) {
	if r.flush {
		return r.lookFlush(call)
	}
	d := r.deferred
	mark, how, err := d.sent(noWait, r.before)
	switch {
	case err == nil && how == departed:
		if done, err = d.link.Reached(mark, d.core.number); done && err == nil {
			d.core.hasRead(r.read)
		}
		return done, how, d.core.blame(call, d.link.Rank(), err)
	case job.Is(err, context.Canceled):
		how, err = unasked, nil
	}
	d.core.world.Poll()
	return false, how, d.core.blame(call, d.link.Rank(), err)
}

// lost returns why the request can never complete, or nil while it may. It cannot complete if the window is closed, or
// if its target serves no more. An operation that has not departed cannot complete, either, if the target has closed
// the window, or has left without its post.
func (r Request) lost(call string, how departure) error {
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

// request returns the Request of the operation on count elements of target that was just issued. An operation on no
// elements is not queued.
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

// RPut is [Window.Put] that returns a [Request]. origin belongs to the library until Wait of the request, a flush, or
// the end of the epoch has returned.
func (w *Window[T]) RPut(origin []T, target, displacement int) (Request, error) {
	if w == nil {
		return Request{}, unmade("Put")
	}
	err := w.Put(origin, target, displacement)
	if err == nil {
		w.of().ownBuffers(bytesOf(origin))
	}
	return w.of().request(len(origin), target, err)
}

// RGet is [Window.Get] that returns a [Request]. result is valid when Wait of the request, a flush, or the end of the
// epoch has returned. Until then its content is undefined.
func (w *Window[T]) RGet(result []T, target, displacement int) (Request, error) {
	if w == nil {
		return Request{}, unmade("Get")
	}
	err := w.Get(result, target, displacement)
	var read *access
	if err == nil {
		read = w.of().ownBuffers(bytesOf(result))
	}
	r, err := w.of().request(len(result), target, err)
	if r.read = read; r.deferred == nil {
		w.of().hasRead(read)
	}
	return r, err
}

// RAccumulate is [Window.Accumulate] that returns a [Request]. origin belongs to the library as in [Window.RPut].
func (w *Window[T]) RAccumulate(op Op, origin []T, target, displacement int) (Request, error) {
	return w.of().request(len(origin), target, w.Accumulate(op, origin, target, displacement))
}

// RGetAccumulate is [Window.GetAccumulate] that returns a [Request]. origin belongs to the library as in [Window.RPut],
// and result is valid as in [Window.RGet].
func (w *Window[T]) RGetAccumulate(op Op, origin, result []T, target, displacement int) (Request, error) {
	err := w.GetAccumulate(op, origin, result, target, displacement)
	if err == nil {
		w.of().ownBuffers(bytesOf(result))
	}
	return w.of().request(len(result), target, err)
}
