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
func overtakings() int { return testsize.N(3) }

// fill sets all elements to x.
func fill(elements []int64, x int) {
	for i := range elements {
		elements[i] = int64(x)
	}
}

// allAre tells whether all elements are x.
func allAre(elements []int64, x int64) bool {
	return !slices.ContainsFunc(elements, func(e int64) bool { return e != x })
}

// What is got in an epoch is what was there before the target's Wait has returned, which
// may change it then.
var gotBeforeWait = register("got before Wait", func(s *script) {
	win := allocate[int64](s, long)
	if s.w.Rank() == 1 {
		origin := groupOf(s, win, 0)
		for round := range overtakings() {
			s.ok(win.Post(s.ctx, origin))
			s.ok(win.Wait(s.ctx))
			fill(win.Local(), round+1)
		}
	} else {
		target := groupOf(s, win, 1)
		got := make([]int64, long)
		for round := range overtakings() {
			s.ok(win.Start(s.ctx, target))
			s.ok(win.Get(got, 1, 0))
			s.ok(win.Complete(s.ctx))
			s.check(allAre(got, int64(round)), "epoch %d: got %d to %d", round, got[0], got[long-1])
		}
	}
	s.ok(win.Close())
})

// What is got under an exclusive lock is what nobody else has changed: rank 0 gets from
// rank 1, which changes its own part, as rank 2 does, each under the lock.
var gotUnderLock = register("got under a lock", func(s *script) {
	win := allocate[int64](s, long)
	buffer := make([]int64, long)
	for round := range overtakings() {
		s.ok(win.Lock(s.ctx, window.Exclusive, 1))
		switch s.w.Rank() {
		case 0:
			s.ok(win.Get(buffer, 1, 0))
		case 1:
			fill(win.Local(), -round)
		case 2:
			fill(buffer, round+1)
			s.ok(win.Put(buffer, 1, 0))
		}
		s.ok(win.Unlock(s.ctx, 1))
		if s.w.Rank() == 0 {
			s.check(allAre(buffer, buffer[0]), "round %d: got %d to %d", round, buffer[0], buffer[long-1])
		}
	}
	s.ok(win.Close())
})

// The same under shared locks, which an exclusive one waits for.
var gotUnderLockAll = register("got under locks of all", func(s *script) {
	win := allocate[int64](s, long)
	buffer := make([]int64, long)
	for round := range overtakings() {
		if s.w.Rank() == 0 {
			s.ok(win.LockAll(s.ctx))
			s.ok(win.Get(buffer, 1, 0))
			s.ok(win.UnlockAll(s.ctx))
			s.check(allAre(buffer, buffer[0]), "round %d: got %d to %d", round, buffer[0], buffer[long-1])
		} else {
			s.ok(win.Lock(s.ctx, window.Exclusive, 1))
			fill(buffer, round*s.w.Rank())
			s.ok(win.Put(buffer, 1, 0))
			s.ok(win.Unlock(s.ctx, 1))
		}
	}
	s.ok(win.Close())
})

// TestOvertaken looks that a call which ends an epoch, and tells the target so, has what
// was got in the epoch.
func TestOvertaken(t *testing.T) {
	for _, c := range []struct {
		name  string
		ranks int
	}{{gotBeforeWait, 2}, {gotUnderLock, 3}, {gotUnderLockAll, 3}} {
		t.Run(fmt.Sprintf("%s/%d", c.name, c.ranks), func(t *testing.T) {
			t.Run("tcp", func(t *testing.T) { jobtest.TCP(t, c.ranks, c.name) })
			t.Run("hosts", func(t *testing.T) { jobtest.Hosts(t, c.ranks, c.name) })
			t.Run("apart", func(t *testing.T) { jobtest.Apart(t, c.ranks, c.name) })
		})
	}
}
