package window_test

import (
	"testing"

	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/window"
)

// heldByDeath has rank 0 hold accumulates back to the victim and to rank 2 when the
// victim dies.
var heldByDeath = register("death of a target of held accumulates", func(s *script) {
	win := allocate[int64](s, farCount)
	s.ok(s.w.Barrier(s.ctx))
	switch s.w.Rank() {
	case victim:
		jobtest.Signal("ready")
		<-s.ctx.Done()
	case 0:
		s.ok(win.LockAll(s.ctx))
		for i := range 9 {
			s.ok(win.Accumulate(window.Sum, []int64{1}, victim, i*5000))
			s.ok(win.Accumulate(window.Sum, []int64{1}, 2, i*5000))
		}
		jobtest.Signal("ready")
		awaitFailure(s)
		expectLost(s, win.Accumulate(window.Sum, []int64{1}, victim, 0), victim)
		s.ok(win.Accumulate(window.Sum, []int64{1}, 2, 0))
		expectLost(s, win.Flush(s.ctx, victim), victim)
		s.ok(win.Flush(s.ctx, 2))
		expectLost(s, win.UnlockAll(s.ctx), victim)
		s.ok(win.Lock(s.ctx, window.Exclusive, 2))
		s.ok(win.Put([]int64{42}, 2, 1))
		s.ok(win.Unlock(s.ctx, 2))
		s.ok(win.Close())
	default:
		jobtest.Signal("ready")
		awaitWritten(s, win, 1)
		for i := range 9 {
			want := int64(1)
			if i == 0 {
				want = 2
			}
			s.check(win.Local()[i*5000] == want, "element %d is %d, want %d", i*5000, win.Local()[i*5000], want)
		}
		s.ok(win.Close())
	}
})

// TestKilledTarget kills a target of accumulates that are held back: those to others
// take effect, and the epoch ends.
func TestKilledTarget(t *testing.T) {
	jobtest.Start(t, deathRanks, heldByDeath).Killed(victim)
}
