package window_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/window"
)

const (
	// long is how many elements an answer has which waits for room on its way, so that
	// what follows the question comes first if nothing holds it back.
	long = 1 << 20
)

// overtakings returns how often that is tried.
func overtakings() int { return testsize.N(2) }

// fill sets all elements to x.
func fill(elements []int64, x int) {
	for i := range elements {
		elements[i] = int64(x)
	}
}

// allAre reports whether all elements are x.
func allAre(elements []int64, x int64) bool {
	return !slices.ContainsFunc(elements, func(e int64) bool { return e != x })
}

// What is got in an epoch is what was there before the target's Wait has returned, which
// may change it then.
var gotBeforeWait = register("got before Wait", func(s *script) {
	win := allocate[int64](s, long)
	if s.World.Rank() == 1 {
		origin := groupOf(s, win, 0)
		for round := range overtakings() {
			s.OK(win.Post(s.Ctx, origin))
			s.OK(win.Wait(s.Ctx))
			fill(win.Local(), round+1)
		}
	} else {
		target := groupOf(s, win, 1)
		got := make([]int64, long)
		for round := range overtakings() {
			s.OK(win.Start(s.Ctx, target))
			s.OK(win.Get(got, 1, 0))
			s.OK(win.Complete(s.Ctx))
			s.Check(allAre(got, int64(round)), "epoch %d: got %d to %d", round, got[0], got[long-1])
		}
	}
	s.OK(win.Close())
})

// No other rank has changed what is got under an exclusive lock. Rank 0 gets from rank 1. Rank 1 changes its own part,
// and so does rank 2, each under the lock.
var gotUnderLock = register("got under a lock", func(s *script) {
	win := allocate[int64](s, long)
	buffer := make([]int64, long)
	for round := range overtakings() {
		s.OK(win.Lock(s.Ctx, window.Exclusive, 1))
		switch s.World.Rank() {
		case 0:
			s.OK(win.Get(buffer, 1, 0))
		case 1:
			fill(win.Local(), -round)
		case 2:
			fill(buffer, round+1)
			s.OK(win.Put(buffer, 1, 0))
		}
		s.OK(win.Unlock(s.Ctx, 1))
		if s.World.Rank() == 0 {
			s.Check(allAre(buffer, buffer[0]), "round %d: got %d to %d", round, buffer[0], buffer[long-1])
		}
	}
	s.OK(win.Close())
})

// The same under shared locks, which an exclusive one waits for.
var gotUnderLockAll = register("got under locks of all", func(s *script) {
	win := allocate[int64](s, long)
	buffer := make([]int64, long)
	for round := range overtakings() {
		if s.World.Rank() == 0 {
			s.OK(win.LockAll(s.Ctx))
			s.OK(win.Get(buffer, 1, 0))
			s.OK(win.UnlockAll(s.Ctx))
			s.Check(allAre(buffer, buffer[0]), "round %d: got %d to %d", round, buffer[0], buffer[long-1])
		} else {
			s.OK(win.Lock(s.Ctx, window.Exclusive, 1))
			fill(buffer, round*s.World.Rank())
			s.OK(win.Put(buffer, 1, 0))
			s.OK(win.Unlock(s.Ctx, 1))
		}
	}
	s.OK(win.Close())
})

// TestOvertaken looks that a call which ends an epoch, and tells the target so, has what
// was got in the epoch.
func TestOvertaken(t *testing.T) {
	busy.Acquire(t)
	for turn, c := range []struct {
		name  string
		ranks int
	}{{gotBeforeWait, 2}, {gotUnderLock, 3}, {gotUnderLockAll, 3}} {
		t.Run(fmt.Sprintf("%s/%d", c.name, c.ranks), func(t *testing.T) {
			// Two ranks on two hosts are two that use TCP.
			forms := []jobtest.Form{{Name: "tcp", Run: jobtest.TCP}, {Name: "apart", Run: jobtest.Apart}, {Name: "hosts", Run: jobtest.Hosts}}[:c.ranks]
			for _, i := range testsize.Turns(turn, len(forms), 1) {
				t.Run(forms[i].Name, func(t *testing.T) { forms[i].Run(t, c.ranks, c.name) })
			}
		})
	}
}
