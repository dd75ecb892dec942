package window_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// overTeams has windows over the job and over teams of its odd and even ranks, in reverse
// order, side by side, each written to by all of its ranks.
func overTeams(s *script) {
	w, err := s.World.Split(s.Ctx, s.World.Rank()%2, -s.World.Rank())
	s.OK(err)
	team := &script{jobtest.Script{Ctx: s.Ctx, World: w}}
	wide, narrow := allocate[int64](s, s.World.Size()+1), allocate[int64](team, w.Size()+1)
	for round := range int64(3) {
		fillOver(s, wide, round)
		fillOver(team, narrow, round)
	}
	last := (w.Rank() + 1) % w.Size()
	s.OK(narrow.Fence(s.Ctx, window.NoSucceed))
	s.OK(narrow.Lock(s.Ctx, window.Exclusive, last))
	s.OK(narrow.Put([]int64{42}, last, 0))
	s.OK(narrow.Unlock(s.Ctx, last))
	s.OK(w.Barrier(s.Ctx))
	s.Check(narrow.Local()[0] == 42, "%d was put under a lock", narrow.Local()[0])
	s.OK(narrow.Close())
	s.OK(w.Close())
	s.OK(wide.Fence(s.Ctx, window.NoSucceed))
	s.OK(wide.Close())
}

// fillOver has each rank put to all, at its own place, and add at the last place, and checks
// what has come.
func fillOver(s *script, win *window.Window[int64], round int64) {
	n, me := s.World.Size(), s.World.Rank()
	s.OK(win.Fence(s.Ctx, 0))
	for target := range n {
		s.OK(win.Put([]int64{round + int64(s.World.InJob(me))}, target, me))
		s.OK(win.Accumulate(window.Sum, []int64{1}, target, n))
	}
	s.OK(win.Fence(s.Ctx, 0))
	for rank, got := range win.Local()[:n] {
		want := round + int64(s.World.InJob(rank))
		s.Check(got == want, "rank %d of %d has put %d, want %d", rank, n, got, want)
	}
	s.Check(win.Local()[n] == int64(n)*(round+1), "the sum is %d", win.Local()[n])
	s.OK(s.World.Barrier(s.Ctx))
}

var windowsOverTeams = registerShared("windows over teams", []int{3, 5}, overTeams)

func TestWindowsOverTeams(t *testing.T) {
	busy.Acquire(t)
	runShared(t, windowsOverTeams)
	t.Run("in virtual time", func(t *testing.T) {
		require.NoError(t, world.Simulate(t.Context(), simulatorOf(t, true), 9, scripted(overTeams)))
	})
}
