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
	s.OK(s.World.Barrier(s.Ctx))
	switch s.World.Rank() {
	case victim:
		jobtest.Signal("ready")
		<-s.Ctx.Done()
	case 0:
		s.OK(win.LockAll(s.Ctx))
		for i := range 9 {
			s.OK(win.Accumulate(window.Sum, []int64{1}, victim, i*5000))
			s.OK(win.Accumulate(window.Sum, []int64{1}, 2, i*5000))
		}
		jobtest.Signal("ready")
		awaitFailure(s)
		s.Lost(win.Accumulate(window.Sum, []int64{1}, victim, 0), victim)
		s.OK(win.Accumulate(window.Sum, []int64{1}, 2, 0))
		s.Lost(win.Flush(s.Ctx, victim), victim)
		s.OK(win.Flush(s.Ctx, 2))
		s.Lost(win.UnlockAll(s.Ctx), victim)
		s.OK(win.Lock(s.Ctx, window.Exclusive, 2))
		s.OK(win.Put([]int64{42}, 2, 1))
		s.OK(win.Unlock(s.Ctx, 2))
		s.OK(win.Close())
	default:
		jobtest.Signal("ready")
		awaitWritten(s, win, 1)
		for i := range 9 {
			want := int64(1)
			if i == 0 {
				want = 2
			}
			s.Check(win.Local()[i*5000] == want, "element %d is %d, want %d", i*5000, win.Local()[i*5000], want)
		}
		s.OK(win.Close())
	}
})

// TestKilledTarget kills a target of accumulates that are held back: those to others
// take effect, and the epoch ends.
func TestKilledTarget(t *testing.T) {
	jobtest.Start(t, deathRanks, heldByDeath).Killed(victim)
}
