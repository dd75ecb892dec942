package window_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/onesided/rma/epoch"
	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/window"
)

// lateOperations has goroutines of rank 0 accumulate on rank 1 while the epoch is opened and closed: an
// accumulate that was not refused is done when the epoch is closed.
func lateOperations(name string, plain int, cycle func(s *script, win *window.Window[int64])) string {
	return register("late operations, "+name, func(s *script) {
		win := allocate[int64](s, 4)
		var stop atomic.Bool
		var accepted atomic.Int64
		var together sync.WaitGroup
		if s.World.Rank() == 0 {
			for range 2 {
				together.Go(func() {
					for !stop.Load() {
						switch err := win.Accumulate(window.Sum, []int64{1}, 1, 2); {
						case err == nil:
							accepted.Add(1)
						case !errors.Is(err, epoch.ErrNoEpoch):
							s.OK(err)
							return
						}
					}
				})
			}
		}
		for range testsize.N(plain) {
			cycle(s, win)
		}
		stop.Store(true)
		together.Wait()
		got := make([]int64, 1)
		s.OK(win.Lock(s.Ctx, window.Exclusive, 1))
		s.OK(win.Get(got, 1, 2))
		s.OK(win.Unlock(s.Ctx, 1))
		if s.World.Rank() == 0 {
			s.Check(got[0] == accepted.Load(), "element is %d after %d accumulates", got[0], accepted.Load())
		}
		s.OK(win.Close())
	})
}

var lateLock = lateOperations("lock", 600, func(s *script, win *window.Window[int64]) {
	if s.World.Rank() == 0 {
		s.OK(win.Lock(s.Ctx, window.Exclusive, 1))
		s.OK(win.Unlock(s.Ctx, 1))
	}
})

var lateFence = lateOperations("fence", 200, func(s *script, win *window.Window[int64]) {
	s.OK(win.Fence(s.Ctx))
	s.OK(win.Fence(s.Ctx, window.NoSucceed))
})

func TestLateOperations(t *testing.T) {
	for _, name := range []string{lateLock, lateFence} {
		t.Run(name, func(t *testing.T) { jobtest.Apart(t, 2, name) })
	}
}
