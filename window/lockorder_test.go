package window_test

import (
	"testing"

	"github.com/onesided/rma/window"
)

// Rank 0 takes exclusive locks of all ranks, from the last to the first, while the others lock all. No rank waits for
// ever, and none sees half of an update.
var lockOrder = registerShared("locking all against locking backwards", []int{2, 3}, func(s *script) {
	win := allocate[int64](s, 1)
	for round := range int64(200) {
		if s.World.Rank() == 0 {
			for target := s.World.Size() - 1; target >= 0; target-- {
				s.OK(win.Lock(s.Ctx, window.Exclusive, target))
				s.OK(win.Put([]int64{round}, target, 0))
			}
			for target := range s.World.Size() {
				s.OK(win.Unlock(s.Ctx, target))
			}
			continue
		}
		s.OK(win.LockAll(s.Ctx))
		seen := make([]int64, s.World.Size())
		for target := range seen {
			s.OK(win.Get(seen[target:][:1], target, 0))
		}
		s.OK(win.FlushAll(s.Ctx))
		s.OK(win.UnlockAll(s.Ctx))
		for target := range seen {
			s.Check(seen[target] == seen[0], "under locks of all, the elements are %v", seen)
		}
	}
	s.OK(win.Close())
})

// TestLockOrder checks that LockAll waits for no rank while others wait for it.
func TestLockOrder(t *testing.T) {
	busy.Acquire(t)
	runShared(t, lockOrder)
}
