package window_test

import (
	"context"
	"testing"

	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/window"
)

// rideWindows has two ranks lock rank 1's parts of two windows in one order: who has the
// second lock has the first, though it had no need of it yet, so that nobody who has the
// first waits for the second for ever.
var rideWindows = register("two windows locked in one order", func(s *script) {
	first, second := allocate[int64](s, 8), allocate[int64](s, 8)
	if s.w.Rank() == 0 {
		s.ok(first.Lock(s.ctx, window.Exclusive, 1))
		s.ok(take(s.ctx, second, window.Exclusive, 1))
		s.ok(s.w.Barrier(s.ctx))
		s.ok(s.w.Barrier(s.ctx))
		s.ok(first.Put([]int64{1}, 1, 0))
		s.ok(second.Put([]int64{2}, 1, 0))
		s.ok(first.Unlock(s.ctx, 1))
		s.ok(second.Unlock(s.ctx, 1))
	} else {
		ended, end := context.WithCancel(s.ctx)
		end()
		s.ok(s.w.Barrier(s.ctx))
		s.fails(first.Lock(ended, window.Exclusive, 1), context.Canceled)
		s.fails(second.Lock(ended, window.Exclusive, 1), context.Canceled)
		s.ok(s.w.Barrier(s.ctx))
		s.ok(first.Lock(s.ctx, window.Exclusive, 1))
		s.ok(second.Lock(s.ctx, window.Exclusive, 1))
		equal(s, "what was put under the locks", []int64{first.Local()[0], second.Local()[0]}, []int64{1, 2})
		s.ok(second.Unlock(s.ctx, 1))
		s.ok(first.Unlock(s.ctx, 1))
	}
	s.ok(second.Close())
	s.ok(first.Close())
})

func TestRideWindows(t *testing.T) {
	t.Run("apart", func(t *testing.T) { jobtest.Apart(t, 2, rideWindows) })
	t.Run("tcp", func(t *testing.T) { jobtest.TCP(t, 2, rideWindows) })
}

// rideRequest has a Request of an operation that an Unlock has completed asked for in an epoch
// whose target has not posted: it does not wait for the post.
var rideRequest = register("a request complete before a post", func(s *script) {
	win := allocate[int64](s, 8)
	other := groupOf(s, win, 1-s.w.Rank())
	if s.w.Rank() == 0 {
		s.ok(win.Lock(s.ctx, window.Shared, 1))
		request, err := win.RPut([]int64{7}, 1, 0)
		s.ok(err)
		s.ok(win.Unlock(s.ctx, 1))
		s.ok(win.Start(s.ctx, other))
		done, err := request.Test()
		s.ok(err)
		s.check(done, "what an Unlock has completed is not complete")
		s.ok(request.Wait(s.ctx))
		s.ok(s.w.Barrier(s.ctx))
		s.ok(win.Complete(s.ctx))
	} else {
		s.ok(s.w.Barrier(s.ctx))
		s.ok(win.Post(s.ctx, other))
		s.ok(win.Wait(s.ctx))
		equal(s, "what was put", win.Local()[:1], []int64{7})
	}
	s.ok(win.Close())
})

func TestRideRequest(t *testing.T) {
	t.Run("apart", func(t *testing.T) { jobtest.Apart(t, 2, rideRequest) })
	t.Run("tcp", func(t *testing.T) { jobtest.TCP(t, 2, rideRequest) })
}

// rideRequestLock has Requests asked for while a lock of their target has to be waited for: what
// an Unlock has completed before does not wait for it, nor does an operation on nothing, whether
// what is done under the lock rides with it or is too long.
var rideRequestLock = register("requests complete before a lock", func(s *script) {
	win := allocate[int64](s, blockedElements)
	if s.w.Rank() == 1 {
		for range 2 {
			s.ok(s.w.Barrier(s.ctx))
			s.ok(win.Lock(s.ctx, window.Exclusive, 1))
			s.ok(s.w.Barrier(s.ctx))
			s.ok(s.w.Barrier(s.ctx))
			s.ok(win.Unlock(s.ctx, 1))
		}
		s.ok(win.Close())
		return
	}
	ended, end := context.WithCancel(s.ctx)
	end()
	for _, count := range []int{1, blockedElements} {
		s.ok(win.Lock(s.ctx, window.Shared, 1))
		before, err := win.RPut([]int64{7}, 1, 0)
		s.ok(err)
		s.ok(win.Unlock(s.ctx, 1))
		s.ok(s.w.Barrier(s.ctx))
		s.ok(s.w.Barrier(s.ctx))
		s.ok(win.Lock(s.ctx, window.Shared, 1))
		under, err := win.RPut(make([]int64, count), 1, 0)
		s.ok(err)
		s.fails(win.Flush(ended, 1), context.Canceled)
		nothing, err := win.RPut(nil, 1, 0)
		s.ok(err)
		for name, r := range map[string]struct {
			window.Request
			complete bool
		}{"before the lock": {before, true}, "under the lock": {under, false}, "of nothing": {nothing, true}} {
			done, err := r.Test()
			s.ok(err)
			s.check(done == r.complete, "%d elements under a lock of another: what is %s is complete: %v", count, name, done)
		}
		s.ok(before.Wait(ended))
		s.ok(nothing.Wait(ended))
		s.fails(under.Wait(ended), context.Canceled)
		s.ok(s.w.Barrier(s.ctx))
		s.ok(win.Unlock(s.ctx, 1))
	}
	s.ok(win.Close())
})

func TestRideRequestLock(t *testing.T) {
	t.Run("apart", func(t *testing.T) { jobtest.Apart(t, 2, rideRequestLock) })
	t.Run("tcp", func(t *testing.T) { jobtest.TCP(t, 2, rideRequestLock) })
}
