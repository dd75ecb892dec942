package window_test

import (
	"errors"
	"runtime"
	"testing"

	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/window"
)

// rideOrder has each goroutine take its locks in one order, 1 before 2 before 0: a goroutine that
// has 2 and takes 0 does not wait for the lock of 1 that another of its rank wishes for, which
// may have to wait for 2.
var rideOrder = register("goroutines that lock in order", func(s *script) {
	win := allocate[int64](s, 8)
	switch s.World.Rank() {
	case 0:
		s.OK(s.World.Barrier(s.Ctx))
		s.OK(take(s.Ctx, win, window.Exclusive, 2))
		unlocked := make(chan error)
		go func() {
			if err := win.Lock(s.Ctx, window.Exclusive, 1); err != nil {
				unlocked <- err
				return
			}
			unlocked <- errors.Join(win.Put([]int64{1}, 1, 0), win.Unlock(s.Ctx, 1))
		}()
		// It wishes by now, as a rule.
		for range 1000 {
			runtime.Gosched()
		}
		s.OK(s.World.Barrier(s.Ctx))
		s.OK(win.Lock(s.Ctx, window.Exclusive, 0))
		s.OK(win.Unlock(s.Ctx, 0))
		s.OK(win.Unlock(s.Ctx, 2))
		s.OK(<-unlocked)
	case 1:
		s.OK(take(s.Ctx, win, window.Exclusive, 1))
		s.OK(s.World.Barrier(s.Ctx))
		s.OK(s.World.Barrier(s.Ctx))
		s.OK(take(s.Ctx, win, window.Exclusive, 2))
		s.OK(win.Unlock(s.Ctx, 2))
		s.OK(win.Unlock(s.Ctx, 1))
	default:
		s.OK(s.World.Barrier(s.Ctx))
		s.OK(s.World.Barrier(s.Ctx))
	}
	s.OK(win.Close())
})

func TestRideOrder(t *testing.T) {
	t.Run("goroutines", func(t *testing.T) { jobtest.Goroutines(t, 3, rideOrder) })
	t.Run("apart", func(t *testing.T) { jobtest.Apart(t, 3, rideOrder) })
}
