package window_test

import (
	"context"
	"testing"
	"time"

	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// lockTurns has ranks take turns at the lock of rank 0 until each has had it some times. Those that map it come when each of
// the others has had it once.
var lockTurns = register("turns at a lock", func(s *script) {
	turns := testsize.PlainOrLarge(10, 20)
	win, gate := allocate[int64](s, 1), allocate[int64](s, 1, window.Notifications(1))
	maps, far := s.World.Mapped(0), []int{0}
	if !maps {
		far[0] = 1
	}
	s.OK(world.AllReduce(s.Ctx, s.World, far, far, func(a, b int) int { return a + b }))
	s.OK(gate.LockAll(s.Ctx))
	if maps {
		s.OK(gate.WaitNotify(s.Ctx, 0, uint64(far[0])))
	}
	ctx, cancel := context.WithTimeout(s.Ctx, time.Minute)
	defer cancel()
	ended := int64(0)
	for taken := 1; ended < int64(s.World.Size()); taken++ {
		s.OK(win.Lock(ctx, window.Exclusive, 0))
		for range 20 {
			s.OK(win.FetchAndOp(window.NoOp, 0, &ended, 0, 0))
			s.OK(win.Flush(ctx, 0))
		}
		if taken == turns {
			s.OK(win.Accumulate(window.Sum, []int64{1}, 0, 0))
		}
		s.OK(win.Unlock(ctx, 0))
		for rank := range s.World.Size() {
			if taken == 1 && !maps {
				s.OK(gate.PutNotify(nil, rank, 0, 0))
				s.OK(gate.Flush(ctx, rank))
			}
		}
	}
	s.OK(gate.UnlockAll(s.Ctx))
	s.OK(gate.Close())
	s.OK(win.Close())
})

// Nobody starves where ranks take turns at a lock, whether it maps the lock or asks for it.
func TestLockTurns(t *testing.T) {
	busy.Acquire(t)
	t.Run("apart", func(t *testing.T) { jobtest.Apart(t, testsize.PlainOrLarge(5, 6), lockTurns) })
	t.Run("TCP", func(t *testing.T) { jobtest.TCP(t, testsize.PlainOrLarge(4, 6), lockTurns) })
	t.Run("hosts", func(t *testing.T) { jobtest.Hosts(t, 4, lockTurns) })
}
