package window_test

import (
	"runtime"
	"testing"

	"github.com/onesided/rma/epoch"
	"github.com/onesided/rma/window"
)

// finish returns when r is complete, by one way or the other.
func finish(s *script, r window.Request, testing bool) {
	for testing {
		done, err := r.Test()
		s.OK(err)
		testing = !done
		// Others of this process have to run.
		runtime.Gosched()
	}
	s.OK(r.Wait(s.Ctx))
	done, err := r.Test()
	s.OK(err)
	s.Check(done, "Test of what was waited for tells that it is not complete")
}

// Accumulates with requests: when one is complete its origin may be written over and its
// result is valid. Those of one word are queued, the others sent at once.
var requests = registerShared("accumulates with requests", []int{3}, func(s *script) {
	const rounds, longest = 20, 300
	n, me := s.World.Size(), s.World.Rank()
	win := allocate[int64](s, (n+1)*longest)
	next := (me + 1) % n
	origin, old := make([]int64, longest), make([]int64, longest)
	s.OK(win.LockAll(s.Ctx))
	for _, count := range []int{1, 4, longest} {
		for round := range int64(rounds) {
			testing := round%2 == 0
			fill(origin, 1)
			r, err := win.RAccumulate(window.Sum, origin[:count], next, 0)
			s.OK(err)
			finish(s, r, testing)
			// This part of the window is combined with by this rank alone.
			mine := longest * (1 + me)
			fill(origin, int(round+1))
			r, err = win.RGetAccumulate(window.Replace, origin[:count], old[:count], next, mine)
			s.OK(err)
			finish(s, r, testing)
			s.Check(allAre(old[:count], round), "round %d of %d elements: what was replaced is %d to %d", round, count, old[0], old[count-1])
			fill(origin, -1000)
		}
		fill(origin, 0)
		s.OK(win.Accumulate(window.Replace, origin[:count], next, longest*(1+me)))
	}
	read := make([]int64, 2)
	r, err := win.RGetAccumulate(window.NoOp, nil, read, next, 1)
	s.OK(err)
	finish(s, r, true)
	equal(s, "an atomic get", read, []int64{2 * rounds, 2 * rounds})
	_, err = win.RAccumulate(window.Sum, origin, next, (n+1)*longest-1)
	s.Fails(err, window.ErrRange)
	_, err = win.RGetAccumulate(window.Sum, origin, old[:1], next, 0)
	s.Fails(err, window.ErrArgument)
	s.OK(win.UnlockAll(s.Ctx))
	r, err = win.RAccumulate(window.Sum, origin, next, 0)
	s.Fails(err, epoch.ErrNoEpoch)
	// That of an operation that was refused is as the zero value.
	finish(s, r, true)
	//lint:ignore SA1012 a nil context is what is tested
	s.Fails(r.Wait(nil), window.ErrArgument)
	s.OK(s.World.Barrier(s.Ctx))
	sums := win.Local()[:longest]
	s.Check(sums[0] == 3*rounds && allAre(sums[1:4], 2*rounds) && allAre(sums[4:], rounds), "the sums are %v", sums[:6])
	s.OK(win.Close())
})

// underLock has rank 0 begin requests at rank 1, which has the exclusive lock of itself and last does held under it.
// The requests are not complete before that. Rank 0 ends them when they can be, and its lock is given back.
func underLock(s *script, count int, held func(*window.Window[int64]), begin func(*window.Window[int64]) []window.Request, end func(*window.Window[int64], []window.Request)) {
	win := allocate[int64](s, count)
	if s.World.Rank() == 1 {
		s.OK(win.Lock(s.Ctx, window.Exclusive, 1))
		s.OK(s.World.Barrier(s.Ctx))
		s.OK(s.World.Barrier(s.Ctx))
		held(win)
		s.OK(win.Unlock(s.Ctx, 1))
	} else {
		s.OK(s.World.Barrier(s.Ctx))
		requests := begin(win)
		for range 2 {
			for _, r := range requests {
				done, err := r.Test()
				s.OK(err)
				s.Check(!done, "complete under the exclusive lock of another")
			}
		}
		s.OK(s.World.Barrier(s.Ctx))
		end(win, requests)
		s.OK(win.Unlock(s.Ctx, 1))
	}
	s.OK(win.Close())
}

// A request is not complete while its operation waits for a lock that another has.
var requestWaits = registerShared("requests that wait for a lock", []int{2}, func(s *script) {
	const count = 1 << 14
	got := make([]int64, count)
	underLock(s, count, func(win *window.Window[int64]) {
		fill(win.Local(), 7)
	}, func(win *window.Window[int64]) []window.Request {
		s.OK(win.Lock(s.Ctx, window.Shared, 1))
		short, err := win.RGet(got[:1], 1, 0)
		s.OK(err)
		long, err := win.RGet(got[1:], 1, 1)
		s.OK(err)
		return []window.Request{short, long}
	}, func(_ *window.Window[int64], requests []window.Request) {
		finish(s, requests[1], true)
		finish(s, requests[0], false)
		s.Check(allAre(got, 7), "got %d to %d", got[0], got[count-1])
	})
}, "apart", "tcp")

func TestRequests(t *testing.T) {
	busy.Acquire(t)
	runShared(t, requests, requestWaits)
}

// The zero Request is complete.
func TestNoRequest(t *testing.T) {
	var r window.Request
	if done, err := r.Test(); !done || err != nil {
		t.Errorf("Test of the zero Request is %v, %v", done, err)
	}
	if err := r.Wait(t.Context()); err != nil {
		t.Errorf("Wait of the zero Request is %v", err)
	}
}
