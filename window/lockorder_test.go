package window_test

import (
	"testing"

	"github.com/onesided/rma/window"
)

// Rank 0 takes exclusive locks of all ranks, from the last to the first, while the
// others lock all: nobody waits for ever, and nobody sees an update half made.
var lockOrder = register("locking all against locking backwards", func(s *script) {
	win := allocate[int64](s, 1)
	for round := range int64(200) {
		if s.w.Rank() == 0 {
			for target := s.w.Size() - 1; target >= 0; target-- {
				s.ok(win.Lock(s.ctx, window.Exclusive, target))
				s.ok(win.Put([]int64{round}, target, 0))
			}
			for target := range s.w.Size() {
				s.ok(win.Unlock(s.ctx, target))
			}
			continue
		}
		s.ok(win.LockAll(s.ctx))
		seen := make([]int64, s.w.Size())
		for target := range seen {
			s.ok(win.Get(seen[target:][:1], target, 0))
		}
		s.ok(win.FlushAll(s.ctx))
		s.ok(win.UnlockAll(s.ctx))
		for target := range seen {
			s.check(seen[target] == seen[0], "under locks of all, the elements are %v", seen)
		}
	}
	s.ok(win.Close())
})

// TestLockOrder looks that LockAll waits for nobody while others wait for it.
func TestLockOrder(t *testing.T) {
	runInForms(t, 0, lockOrder, 2, 3)
}
