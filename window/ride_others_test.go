package window_test

import (
	"context"
	"testing"

	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/window"
)

// rideWindows has two ranks lock rank 1's parts of two windows in one order. A rank with the second lock has the first
// one, though it had no need of it yet. So no rank with the first lock waits for the second for ever.
var rideWindows = register("two windows locked in one order", func(s *script) {
	first, second := allocate[int64](s, 8), allocate[int64](s, 8)
	if s.World.Rank() == 0 {
		s.OK(first.Lock(s.Ctx, window.Exclusive, 1))
		s.OK(take(s.Ctx, second, window.Exclusive, 1))
		s.OK(s.World.Barrier(s.Ctx))
		s.OK(s.World.Barrier(s.Ctx))
		s.OK(first.Put([]int64{1}, 1, 0))
		s.OK(second.Put([]int64{2}, 1, 0))
		s.OK(first.Unlock(s.Ctx, 1))
		s.OK(second.Unlock(s.Ctx, 1))
	} else {
		ended, end := context.WithCancel(s.Ctx)
		end()
		s.OK(s.World.Barrier(s.Ctx))
		s.Fails(first.Lock(ended, window.Exclusive, 1), context.Canceled)
		s.Fails(second.Lock(ended, window.Exclusive, 1), context.Canceled)
		s.OK(s.World.Barrier(s.Ctx))
		s.OK(first.Lock(s.Ctx, window.Exclusive, 1))
		s.OK(second.Lock(s.Ctx, window.Exclusive, 1))
		equal(s, "what was put under the locks", []int64{first.Local()[0], second.Local()[0]}, []int64{1, 2})
		s.OK(second.Unlock(s.Ctx, 1))
		s.OK(first.Unlock(s.Ctx, 1))
	}
	s.OK(second.Close())
	s.OK(first.Close())
})

func TestRideWindows(t *testing.T) {
	t.Run("apart", func(t *testing.T) { jobtest.Apart(t, 2, rideWindows) })
	t.Run("tcp", func(t *testing.T) { jobtest.TCP(t, 2, rideWindows) })
}

// rideRequest has a Request of an operation that an Unlock has completed asked for in an epoch
// whose target has not posted: it does not wait for the post.
var rideRequest = register("a request complete before a post", func(s *script) {
	win := allocate[int64](s, 8)
	other := groupOf(s, win, 1-s.World.Rank())
	if s.World.Rank() == 0 {
		s.OK(win.Lock(s.Ctx, window.Shared, 1))
		request, err := win.RPut([]int64{7}, 1, 0)
		s.OK(err)
		s.OK(win.Unlock(s.Ctx, 1))
		s.OK(win.Start(s.Ctx, other))
		done, err := request.Test()
		s.OK(err)
		s.Check(done, "what an Unlock has completed is not complete")
		s.OK(request.Wait(s.Ctx))
		s.OK(s.World.Barrier(s.Ctx))
		s.OK(win.Complete(s.Ctx))
	} else {
		s.OK(s.World.Barrier(s.Ctx))
		s.OK(win.Post(s.Ctx, other))
		s.OK(win.Wait(s.Ctx))
		equal(s, "what was put", win.Local()[:1], []int64{7})
	}
	s.OK(win.Close())
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
	if s.World.Rank() == 1 {
		for range 2 {
			s.OK(s.World.Barrier(s.Ctx))
			s.OK(win.Lock(s.Ctx, window.Exclusive, 1))
			s.OK(s.World.Barrier(s.Ctx))
			s.OK(s.World.Barrier(s.Ctx))
			s.OK(win.Unlock(s.Ctx, 1))
		}
		s.OK(win.Close())
		return
	}
	ended, end := context.WithCancel(s.Ctx)
	end()
	for _, count := range []int{1, blockedElements} {
		s.OK(win.Lock(s.Ctx, window.Shared, 1))
		before, err := win.RPut([]int64{7}, 1, 0)
		s.OK(err)
		s.OK(win.Unlock(s.Ctx, 1))
		s.OK(s.World.Barrier(s.Ctx))
		s.OK(s.World.Barrier(s.Ctx))
		s.OK(win.Lock(s.Ctx, window.Shared, 1))
		under, err := win.RPut(make([]int64, count), 1, 0)
		s.OK(err)
		s.Fails(win.Flush(ended, 1), context.Canceled)
		nothing, err := win.RPut(nil, 1, 0)
		s.OK(err)
		for name, r := range map[string]struct {
			window.Request
			complete bool
		}{"before the lock": {before, true}, "under the lock": {under, false}, "of nothing": {nothing, true}} {
			done, err := r.Test()
			s.OK(err)
			s.Check(done == r.complete, "%d elements under a lock of another: what is %s is complete: %v", count, name, done)
		}
		s.OK(before.Wait(ended))
		s.OK(nothing.Wait(ended))
		s.Fails(under.Wait(ended), context.Canceled)
		s.OK(s.World.Barrier(s.Ctx))
		s.OK(win.Unlock(s.Ctx, 1))
	}
	s.OK(win.Close())
})

func TestRideRequestLock(t *testing.T) {
	t.Run("apart", func(t *testing.T) { jobtest.Apart(t, 2, rideRequestLock) })
	t.Run("tcp", func(t *testing.T) { jobtest.TCP(t, 2, rideRequestLock) })
}
