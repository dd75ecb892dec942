package window_test

import (
	"context"
	"runtime"
	"testing"

	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/window"
)

// rideTakenBack has a goroutine of rank 0 wait, in a Lock of another rank, for a lock that another goroutine has
// requested and withdraws. Then no goroutine has to wait for it.
var rideTakenBack = register("a wish taken back from who waits for it", func(s *script) {
	win := allocate[int64](s, 8)
	if s.World.Rank() == 1 {
		s.OK(take(s.Ctx, win, window.Exclusive, 1))
		s.OK(s.World.Barrier(s.Ctx))
		s.OK(s.World.Barrier(s.Ctx))
		s.OK(win.Unlock(s.Ctx, 1))
	} else {
		s.OK(s.World.Barrier(s.Ctx))
		ended, end := context.WithCancel(s.Ctx)
		end()
		for range 10 {
			s.OK(win.Lock(s.Ctx, window.Shared, 1))
			s.Fails(win.Lock(ended, window.Shared, 0), context.Canceled)
			locked := make(chan error)
			go func() { locked <- win.Lock(s.Ctx, window.Shared, 0) }()
			// It waits by now, as a rule.
			for range 1000 {
				runtime.Gosched()
			}
			s.OK(win.Unlock(s.Ctx, 1))
			s.OK(<-locked)
			s.OK(win.Unlock(s.Ctx, 0))
		}
		s.OK(s.World.Barrier(s.Ctx))
	}
	s.OK(win.Close())
})

func TestWishTakenBackFromWaiter(t *testing.T) {
	t.Run("apart", func(t *testing.T) { jobtest.Apart(t, 2, rideTakenBack) })
	t.Run("tcp", func(t *testing.T) { jobtest.TCP(t, 2, rideTakenBack) })
}
