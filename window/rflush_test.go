package window_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// Flushes with requests go side by side, and operations that come later while they are awaited.
var flushes = register("flushes with requests", func(s *script) {
	const long = 1 << 15
	n, me := s.w.Size(), s.w.Rank()
	win := allocate[int64](s, n*(1+long))
	s.ok(win.LockAll(s.ctx))
	var first, second []window.Request
	flush := func(to []window.Request) []window.Request {
		to = to[:0]
		for target := range n {
			r, err := win.RFlush(target)
			s.ok(err)
			to = append(to, r)
		}
		return to
	}
	block, old, told := make([]int64, long), make([]int64, n), make([]int64, n)
	for round := range int64(testsize.N(15)) {
		fill(block, int(round+1))
		for target := range n {
			s.ok(win.Put(block, target, n+me*long))
			s.ok(win.Accumulate(window.Sum, []int64{1}, target, me))
		}
		first = flush(first)
		for target := range n {
			s.ok(win.FetchAndOp(window.NoOp, 0, &old[target], target, me))
		}
		for target, r := range first {
			finish(s, r, (target+int(round))%2 == 0)
		}
		// What has been put is the program's again.
		fill(block, -1)
		second = flush(second)
		for target, r := range second {
			finish(s, r, (target+int(round))%2 == 1)
			s.check(old[target] == round+1, "round %d: rank %d has counted %d", round, target, old[target])
		}
		for target := range n {
			s.ok(win.Get(told[target:target+1], target, n+me*long))
		}
		s.ok(win.FlushAll(s.ctx))
		s.check(allAre(told, round+1), "round %d: what was put is %v", round, told)
	}
	s.ok(win.UnlockAll(s.ctx))
	for _, r := range second {
		s.ok(r.Wait(s.ctx))
	}
	s.ok(win.Close())
})

// A flush with a request waits for no lock. It is complete when all is there, for which the lock is held.
var flushWaits = register("a flush with a request under a lock that another has", func(s *script) {
	const count = 1 << 14
	underLock(s, count, func(win *window.Window[int64]) {
		s.check(allAre(win.Local(), 0), "there is something before the lock was given back")
	}, func(win *window.Window[int64]) []window.Request {
		s.ok(win.Lock(s.ctx, window.Exclusive, 1))
		var requests []window.Request
		begin := func() {
			r, err := win.RFlush(1)
			s.ok(err)
			requests = append(requests, r)
		}
		begin()
		// It is of nothing.
		finish(s, requests[0], true)
		requests = requests[:0]
		s.ok(win.Put([]int64{7}, 1, 0))
		begin()
		block := make([]int64, count-1)
		fill(block, 7)
		s.ok(win.Put(block, 1, 1))
		begin()
		return requests
	}, func(win *window.Window[int64], requests []window.Request) {
		finish(s, requests[0], true)
		finish(s, requests[1], false)
		got := make([]int64, count)
		s.ok(win.Get(got, 1, 0))
		s.ok(win.Flush(s.ctx, 1))
		s.check(allAre(got, 7), "got %d to %d", got[0], got[count-1])
	})
})

// A flush of nothing is complete by Test alone, under a lock that was not asked for.
var flushOfNothing = register("a flush of nothing", func(s *script) {
	win := allocate[int64](s, 1)
	next := (s.w.Rank() + 1) % s.w.Size()
	s.ok(win.Lock(s.ctx, window.Shared, next))
	r, err := win.RFlush(next)
	s.ok(err)
	finish(s, r, true)
	s.ok(win.Unlock(s.ctx, next))
	s.ok(win.Close())
})

// A request waits for nothing that was begun behind its flush: not for the post of an epoch, nor for a lock.
var flushOfBefore = register("a flush of an epoch before", func(s *script) {
	win := allocate[int64](s, 8)
	for round := range int64(4) {
		if s.w.Rank() == 1 {
			s.ok(s.w.Barrier(s.ctx))
			s.ok(win.Post(s.ctx, groupOf(s, win, 0)))
			s.ok(win.Wait(s.ctx))
			s.ok(s.w.Barrier(s.ctx))
			s.check(win.Local()[0] == round+1 && win.Local()[1] == round+1, "round %d: there are %v", round, win.Local())
			s.ok(s.w.Barrier(s.ctx))
			continue
		}
		s.ok(win.Lock(s.ctx, window.Exclusive, 1))
		s.ok(win.Put([]int64{round + 1}, 1, 0))
		r, err := win.RFlush(1)
		s.ok(err)
		s.ok(win.Unlock(s.ctx, 1))
		s.ok(win.Start(s.ctx, groupOf(s, win, 1)))
		s.ok(win.Put([]int64{round + 1}, 1, 1))
		finish(s, r, round%2 == 0)
		s.ok(s.w.Barrier(s.ctx))
		s.ok(win.Complete(s.ctx))
		s.ok(s.w.Barrier(s.ctx))
		s.ok(s.w.Barrier(s.ctx))
	}
	s.ok(win.Close())
})

// flushOnce has operations come behind a flush that could not begin at once, as often as it is looked at: it does not wait
// for those.
func flushOnce(s *script) {
	const long = 1 << 13
	win := allocate[int64](s, 8+long)
	if s.w.Rank() == 0 {
		s.ok(win.Lock(s.ctx, window.Shared, 1))
		// It is too long to go with the lock.
		s.ok(win.Put(make([]int64, long), 1, 8))
		r, err := win.RFlush(1)
		s.ok(err)
		looks := 0
		for done := false; !done && looks < 1000; looks++ {
			s.ok(win.Accumulate(window.Sum, []int64{1}, 1, 1))
			_, err := win.RFlush(1)
			s.ok(err)
			s.w.Compute(50 * time.Nanosecond)
			done, err = r.Test()
			s.ok(err)
		}
		s.check(looks < 1000, "%d looks, and a flush is not complete", looks)
		s.ok(win.Unlock(s.ctx, 1))
	}
	s.ok(s.w.Barrier(s.ctx))
	s.ok(win.Close())
}

func TestRFlush(t *testing.T) {
	t.Run("of nothing", func(t *testing.T) { jobtest.Run(t, 2, flushOfNothing) })
	t.Run("of an epoch before", func(t *testing.T) { jobtest.Apart(t, 2, flushOfBefore); jobtest.TCP(t, 2, flushOfBefore) })
	t.Run("overtaken by nothing", func(t *testing.T) {
		require.NoError(t, world.Simulate(t.Context(), simulator(t, "ndr-2024", 1), 2, scripted(flushOnce)))
	})
	t.Run("side by side", func(t *testing.T) { jobtest.Run(t, 3, flushes) })
	for name, rode := range map[string]bool{"served": false, "served, behind what rode with a lock": true} {
		t.Run(name, func(t *testing.T) {
			silent, serve := make(chan struct{}), make(chan struct{})
			require.NoError(t, world.Run(t.Context(), 2, scripted(func(s *script) { flushUnserved(s, rode, silent, serve) }), jobtest.OptionsApart()...))
		})
	}
	t.Run("without room to ask", func(t *testing.T) {
		silent, serve := make(chan struct{}), make(chan struct{})
		require.NoError(t, world.Run(t.Context(), 2, scripted(func(s *script) { flushUnasked(s, silent, serve) }), jobtest.OptionsApart()...))
	})
	t.Run("of one who leaves", func(t *testing.T) {
		require.NoError(t, world.Run(t.Context(), 2, scripted(flushOfLeaver), jobtest.OptionsApart()...))
	})
	t.Run("locks", func(t *testing.T) { jobtest.Apart(t, 2, flushWaits); jobtest.TCP(t, 2, flushWaits) })
}

// flushOfLeaver has a flush wait for the lock of a rank that leaves with it, which breaks that.
func flushOfLeaver(s *script) {
	win := allocate[int64](s, 1)
	if s.w.Rank() == 1 {
		s.ok(win.Lock(s.ctx, window.Exclusive, 1))
		s.ok(s.w.Barrier(s.ctx))
		return
	}
	s.ok(s.w.Barrier(s.ctx))
	s.ok(win.Lock(s.ctx, window.Shared, 1))
	s.ok(win.Put([]int64{1}, 1, 0))
	r, err := win.RFlush(1)
	for done := false; !done && err == nil; {
		done, err = r.Test()
	}
	s.ok(err)
	s.ok(win.Unlock(s.ctx, 1))
}

// serveNothing has a rank serve nothing, which it says, until it is told to.
func serveNothing(s *script, silent, serve chan struct{}) {
	s.w.Exclude(func() {
		close(silent)
		<-serve
	})
}

// flushUnasked has a flush begin when its target, which serves nothing, was asked as much as it can be: who waits for it
// asks when it has answered.
func flushUnasked(s *script, silent, serve chan struct{}) {
	const most = 64
	win := allocate[int64](s, 2)
	s.ok(win.LockAll(s.ctx))
	s.ok(s.w.Barrier(s.ctx))
	if s.w.Rank() == 1 {
		serveNothing(s, silent, serve)
	} else {
		<-silent
		var requests [most]window.Request
		results := make([]int64, most)
		for i := range requests {
			var err error
			requests[i], err = win.RGetAccumulate(window.Sum, []int64{1}, results[i:i+1], 1, 1)
			s.ok(err)
			// It leaves by itself.
			done, err := requests[i].Test()
			s.ok(err)
			s.check(!done, "complete at a rank that has not served it")
		}
		s.ok(win.Accumulate(window.Sum, []int64{7}, 1, 0))
		r, err := win.RFlush(1)
		s.ok(err)
		soon, end := context.WithTimeout(s.ctx, 10*time.Millisecond) // expires
		err = r.Wait(soon)
		end()
		close(serve)
		s.fails(err, context.DeadlineExceeded)
		finish(s, r, false)
		for i, request := range requests {
			finish(s, request, true)
			s.check(results[i] == int64(i), "result %d is %d", i, results[i])
		}
	}
	s.ok(s.w.Barrier(s.ctx))
	s.check(s.w.Rank() == 0 || win.Local()[0] == 7, "there is %d", win.Local()[0])
	s.ok(win.UnlockAll(s.ctx))
	s.ok(win.Close())
}

// flushUnserved has an accumulate sent to a rank that serves nothing from silent until serve: its flush is not complete.
// One before rode with the lock, or there was none.
func flushUnserved(s *script, rode bool, silent, serve chan struct{}) {
	win := allocate[int64](s, 2)
	if rode {
		s.ok(win.Lock(s.ctx, window.Shared, 1))
		s.ok(win.Accumulate(window.Sum, []int64{7}, 1, 1))
		s.ok(win.Flush(s.ctx, 1))
	} else {
		s.ok(win.LockAll(s.ctx))
	}
	s.ok(s.w.Barrier(s.ctx))
	if s.w.Rank() == 1 {
		serveNothing(s, silent, serve)
	} else {
		<-silent
		s.ok(win.Accumulate(window.Sum, []int64{7}, 1, 0))
		r, err := win.RFlush(1)
		s.ok(err)
		func() {
			defer close(serve)
			// The message comes to the card of rank 1, which says so, in far fewer looks.
			for range 10_000 {
				done, err := r.Test()
				s.ok(err)
				s.check(!done, "complete at a rank that has not served it")
				runtime.Gosched()
			}
		}()
		finish(s, r, true)
	}
	s.ok(s.w.Barrier(s.ctx))
	s.check(s.w.Rank() == 0 || win.Local()[0] == 7, "there is %d", win.Local()[0])
	if rode {
		s.ok(win.Unlock(s.ctx, 1))
	} else {
		s.ok(win.UnlockAll(s.ctx))
	}
	s.ok(win.Close())
}

// flushOfDead has a flush ride with the lock of a rank that dies with it: who waits for it is told, also when the Unlock has
// been told already.
var flushOfDead = register("a flush of one who dies", func(s *script) {
	win := allocate[int64](s, 1)
	if s.w.Rank() == victim {
		s.ok(win.Lock(s.ctx, window.Exclusive, victim))
	}
	s.ok(s.w.Barrier(s.ctx))
	var r window.Request
	if s.w.Rank() == 0 {
		s.ok(win.Lock(s.ctx, window.Shared, victim))
		s.ok(win.Accumulate(window.Sum, []int64{1}, victim, 0))
		var err error
		r, err = win.RFlush(victim)
		s.ok(err)
	}
	s.ok(s.w.Barrier(s.ctx))
	jobtest.Signal("ready")
	if s.w.Rank() == victim {
		<-s.ctx.Done()
	}
	for s.w.Failure(victim) == nil {
		s.ok(s.ctx.Err())
		s.w.Poll()
		runtime.Gosched()
	}
	if s.w.Rank() == 0 {
		expectLost(s, win.Unlock(s.ctx, victim), victim)
		_, err := r.Test()
		expectLost(s, err, victim)
		expectLost(s, r.Wait(s.ctx), victim)
	}
	s.ok(win.Close())
})

func TestRFlushOfDead(t *testing.T) {
	jobtest.StartWith(t, deathRanks, flushOfDead, func(int) []string { return []string{"RMA_DEVICE=tcp"} }).Killed(victim)
}
