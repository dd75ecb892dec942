package window_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// overTeams has windows over the job and over teams of its odd and even ranks, in reverse
// order, side by side, each written to by all of its ranks.
func overTeams(s *script) {
	w, err := s.w.Split(s.ctx, s.w.Rank()%2, -s.w.Rank())
	s.ok(err)
	team := &script{ctx: s.ctx, w: w}
	wide, narrow := allocate[int64](s, s.w.Size()+1), allocate[int64](team, w.Size()+1)
	for round := range int64(3) {
		fillOver(s, wide, round)
		fillOver(team, narrow, round)
	}
	last := (w.Rank() + 1) % w.Size()
	s.ok(narrow.Fence(s.ctx, window.NoSucceed))
	s.ok(narrow.Lock(s.ctx, window.Exclusive, last))
	s.ok(narrow.Put([]int64{42}, last, 0))
	s.ok(narrow.Unlock(s.ctx, last))
	s.ok(w.Barrier(s.ctx))
	s.check(narrow.Local()[0] == 42, "%d was put under a lock", narrow.Local()[0])
	s.ok(narrow.Close())
	s.ok(w.Close())
	s.ok(wide.Fence(s.ctx, window.NoSucceed))
	s.ok(wide.Close())
}

// fillOver has each rank put to all, at its own place, and add at the last place, and checks
// what has come.
func fillOver(s *script, win *window.Window[int64], round int64) {
	n, me := s.w.Size(), s.w.Rank()
	s.ok(win.Fence(s.ctx, 0))
	for target := range n {
		s.ok(win.Put([]int64{round + int64(s.w.InJob(me))}, target, me))
		s.ok(win.Accumulate(window.Sum, []int64{1}, target, n))
	}
	s.ok(win.Fence(s.ctx, 0))
	for rank, got := range win.Local()[:n] {
		want := round + int64(s.w.InJob(rank))
		s.check(got == want, "rank %d of %d has put %d, want %d", rank, n, got, want)
	}
	s.check(win.Local()[n] == int64(n)*(round+1), "the sum is %d", win.Local()[n])
	s.ok(s.w.Barrier(s.ctx))
}

var windowsOverTeams = register("windows over teams", overTeams)

func TestWindowsOverTeams(t *testing.T) {
	runInForms(t, 0, windowsOverTeams, 2, 5)
	t.Run("in virtual time", func(t *testing.T) {
		require.NoError(t, world.Simulate(t.Context(), simulatorOf(t, true), 9, scripted(overTeams)))
	})
}
