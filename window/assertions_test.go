package window_test

import (
	"context"
	"testing"

	"github.com/onesided/rma/epoch"
	"github.com/onesided/rma/window"
)

// NoPut and NoStore are promises of a single rank. A Fence with them closes and opens epochs like one without. In even
// rounds no rank puts to rank 0, and a rank stores to its part only if it has not promised otherwise.
var promises = registerShared("fences with promises", []int{3}, func(s *script) {
	n, me := s.World.Size(), s.World.Rank()
	win := allocate[int64](s, n+1)
	s.OK(win.Fence(s.Ctx, window.NoPrecede, window.NoStore))
	want := make([]int64, n+1)
	for round := range int64(12) {
		var asserts []window.Assert
		quiet := round%2 == 0
		if quiet && me == 0 {
			asserts = append(asserts, window.NoPut)
		}
		if round%3 == int64(me)%3 {
			win.Local()[n] = round
			want[n] = round
		} else {
			asserts = append(asserts, window.NoStore)
		}
		s.OK(win.Fence(s.Ctx, asserts...))
		got := make([]int64, 1)
		next := (me + 1) % n
		s.OK(win.Get(got, next, n))
		for to := range n {
			if to != 0 || !quiet {
				s.OK(win.Put([]int64{round*100 + int64(me)}, to, me))
			}
		}
		s.OK(win.Fence(s.Ctx))
		for from := range n {
			if me != 0 || !quiet {
				want[from] = round*100 + int64(from)
			}
		}
		equal(s, "the part", win.Local(), want)
		stored := round - (round+3-int64(next)%3)%3
		s.Check(got[0] == max(stored, 0), "round %d: rank %d's own element is %d, want %d", round, next, got[0], max(stored, 0))
	}
	s.OK(win.Fence(s.Ctx, window.NoSucceed, window.NoPut, window.NoStore))
	s.Fails(win.Put([]int64{1}, me, 0), epoch.ErrNoEpoch)
	s.OK(win.Close())
})

// A Fence that is continued has the promises that it was begun with.
var promisesKept = registerShared("a fence continued with other promises", []int{3}, func(s *script) {
	win := allocate[int64](s, 1)
	if s.World.Rank() != 0 {
		s.OK(s.World.Barrier(s.Ctx))
		s.OK(win.Fence(s.Ctx))
	} else {
		ended, end := context.WithCancel(s.Ctx)
		end()
		s.Fails(win.Fence(ended, window.NoPut, window.NoStore), context.Canceled)
		for _, other := range [][]window.Assert{nil, {window.NoPut}, {window.NoStore}, {window.NoPut, window.NoStore, window.NoPrecede}} {
			s.Fails(win.Fence(s.Ctx, other...), epoch.ErrAssert)
		}
		s.OK(s.World.Barrier(s.Ctx))
		s.OK(win.Fence(s.Ctx, window.NoStore|window.NoPut))
	}
	s.OK(win.Fence(s.Ctx, window.NoSucceed))
	s.OK(win.Close())
})

func TestAssertions(t *testing.T) {
	busy.Acquire(t)
	runShared(t, promises, promisesKept)
}
