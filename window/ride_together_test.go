package window_test

import (
	"context"
	"runtime"
	"testing"

	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/window"
)

// rideTakenBack has a goroutine of rank 0 wait, in a Lock of another rank, for a lock that
// another goroutine wishes for and takes back: nobody has to wait for it then.
var rideTakenBack = register("a wish taken back from who waits for it", func(s *script) {
	win := allocate[int64](s, 8)
	if s.w.Rank() == 1 {
		s.ok(take(s.ctx, win, window.Exclusive, 1))
		s.ok(s.w.Barrier(s.ctx))
		s.ok(s.w.Barrier(s.ctx))
		s.ok(win.Unlock(s.ctx, 1))
	} else {
		s.ok(s.w.Barrier(s.ctx))
		ended, end := context.WithCancel(s.ctx)
		end()
		for range 10 {
			s.ok(win.Lock(s.ctx, window.Shared, 1))
			s.fails(win.Lock(ended, window.Shared, 0), context.Canceled)
			locked := make(chan error)
			go func() { locked <- win.Lock(s.ctx, window.Shared, 0) }()
			// It waits by now, as a rule.
			for range 1000 {
				runtime.Gosched()
			}
			s.ok(win.Unlock(s.ctx, 1))
			s.ok(<-locked)
			s.ok(win.Unlock(s.ctx, 0))
		}
		s.ok(s.w.Barrier(s.ctx))
	}
	s.ok(win.Close())
})

func TestWishTakenBackFromWaiter(t *testing.T) {
	t.Run("apart", func(t *testing.T) { jobtest.Apart(t, 2, rideTakenBack) })
	t.Run("tcp", func(t *testing.T) { jobtest.TCP(t, 2, rideTakenBack) })
}
