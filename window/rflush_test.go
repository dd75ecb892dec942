package window_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/internal/simtest"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// Flushes with requests go side by side, and operations that come later while they are awaited.
var flushes = registerShared("flushes with requests", []int{3}, func(s *script) {
	const long = 1 << 15
	n, me := s.World.Size(), s.World.Rank()
	win := allocate[int64](s, n*(1+long))
	s.OK(win.LockAll(s.Ctx))
	var first, second []window.Request
	flush := func(to []window.Request) []window.Request {
		to = to[:0]
		for target := range n {
			r, err := win.RFlush(target)
			s.OK(err)
			to = append(to, r)
		}
		return to
	}
	block, old, told := make([]int64, long), make([]int64, n), make([]int64, n)
	for round := range int64(testsize.N(15)) {
		fill(block, int(round+1))
		for target := range n {
			s.OK(win.Put(block, target, n+me*long))
			s.OK(win.Accumulate(window.Sum, []int64{1}, target, me))
		}
		first = flush(first)
		for target := range n {
			s.OK(win.FetchAndOp(window.NoOp, 0, &old[target], target, me))
		}
		for target, r := range first {
			finish(s, r, (target+int(round))%2 == 0)
		}
		// What has been put is the program's again.
		fill(block, -1)
		second = flush(second)
		for target, r := range second {
			finish(s, r, (target+int(round))%2 == 1)
			s.Check(old[target] == round+1, "round %d: rank %d has counted %d", round, target, old[target])
		}
		for target := range n {
			s.OK(win.Get(told[target:target+1], target, n+me*long))
		}
		s.OK(win.FlushAll(s.Ctx))
		s.Check(allAre(told, round+1), "round %d: what was put is %v", round, told)
	}
	s.OK(win.UnlockAll(s.Ctx))
	for _, r := range second {
		s.OK(r.Wait(s.Ctx))
	}
	s.OK(win.Close())
})

// A flush with a request waits for no lock. It is complete when all is there, for which the lock is held.
var flushWaits = registerShared("a flush with a request under a lock that another has", []int{2}, func(s *script) {
	const count = 1 << 14
	underLock(s, count, func(win *window.Window[int64]) {
		s.Check(allAre(win.Local(), 0), "there is something before the lock was given back")
	}, func(win *window.Window[int64]) []window.Request {
		s.OK(win.Lock(s.Ctx, window.Exclusive, 1))
		var requests []window.Request
		begin := func() {
			r, err := win.RFlush(1)
			s.OK(err)
			requests = append(requests, r)
		}
		begin()
		// It is of nothing.
		finish(s, requests[0], true)
		requests = requests[:0]
		s.OK(win.Put([]int64{7}, 1, 0))
		begin()
		block := make([]int64, count-1)
		fill(block, 7)
		s.OK(win.Put(block, 1, 1))
		begin()
		return requests
	}, func(win *window.Window[int64], requests []window.Request) {
		finish(s, requests[0], true)
		finish(s, requests[1], false)
		got := make([]int64, count)
		s.OK(win.Get(got, 1, 0))
		s.OK(win.Flush(s.Ctx, 1))
		s.Check(allAre(got, 7), "got %d to %d", got[0], got[count-1])
	})
}, "apart", "tcp")

// A flush of nothing is complete by Test alone, under a lock that was not asked for.
var flushOfNothing = registerShared("a flush of nothing", []int{2}, func(s *script) {
	win := allocate[int64](s, 1)
	next := (s.World.Rank() + 1) % s.World.Size()
	s.OK(win.Lock(s.Ctx, window.Shared, next))
	r, err := win.RFlush(next)
	s.OK(err)
	finish(s, r, true)
	s.OK(win.Unlock(s.Ctx, next))
	s.OK(win.Close())
})

// A request waits for nothing that began after its flush: not for the post of an epoch, nor for a lock.
var flushOfBefore = registerShared("a flush of an epoch before", []int{2}, func(s *script) {
	win := allocate[int64](s, 8)
	for round := range int64(4) {
		if s.World.Rank() == 1 {
			s.OK(s.World.Barrier(s.Ctx))
			s.OK(win.Post(s.Ctx, groupOf(s, win, 0)))
			s.OK(win.Wait(s.Ctx))
			s.OK(s.World.Barrier(s.Ctx))
			s.Check(win.Local()[0] == round+1 && win.Local()[1] == round+1, "round %d: there are %v", round, win.Local())
			s.OK(s.World.Barrier(s.Ctx))
			continue
		}
		s.OK(win.Lock(s.Ctx, window.Exclusive, 1))
		s.OK(win.Put([]int64{round + 1}, 1, 0))
		r, err := win.RFlush(1)
		s.OK(err)
		s.OK(win.Unlock(s.Ctx, 1))
		s.OK(win.Start(s.Ctx, groupOf(s, win, 1)))
		s.OK(win.Put([]int64{round + 1}, 1, 1))
		finish(s, r, round%2 == 0)
		s.OK(s.World.Barrier(s.Ctx))
		s.OK(win.Complete(s.Ctx))
		s.OK(s.World.Barrier(s.Ctx))
		s.OK(s.World.Barrier(s.Ctx))
	}
	s.OK(win.Close())
}, "apart", "tcp")

// flushOnce has operations follow a flush that could not begin at once, one for each look at it. The flush does not
// wait for them.
func flushOnce(s *script) {
	const long = 1 << 13
	win := allocate[int64](s, 8+long)
	if s.World.Rank() == 0 {
		s.OK(win.Lock(s.Ctx, window.Shared, 1))
		// It is too long to go with the lock.
		s.OK(win.Put(make([]int64, long), 1, 8))
		r, err := win.RFlush(1)
		s.OK(err)
		looks := 0
		for done := false; !done && looks < 1000; looks++ {
			s.OK(win.Accumulate(window.Sum, []int64{1}, 1, 1))
			_, err := win.RFlush(1)
			s.OK(err)
			s.World.Compute(50 * time.Nanosecond)
			done, err = r.Test()
			s.OK(err)
		}
		s.Check(looks < 1000, "%d looks, and a flush is not complete", looks)
		s.OK(win.Unlock(s.Ctx, 1))
	}
	s.OK(s.World.Barrier(s.Ctx))
	s.OK(win.Close())
}

func TestRFlush(t *testing.T) {
	busy.Acquire(t)
	runShared(t, flushOfNothing, flushOfBefore, flushes, flushWaits)
	t.Run("overtaken by nothing", func(t *testing.T) {
		require.NoError(t, world.Simulate(t.Context(), simtest.New(t, "ndr-2024", 1), 2, scripted(flushOnce)))
	})
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
}

// flushOfLeaver has a flush wait for the lock of a rank that leaves with it, which breaks that.
func flushOfLeaver(s *script) {
	win := allocate[int64](s, 1)
	if s.World.Rank() == 1 {
		s.OK(win.Lock(s.Ctx, window.Exclusive, 1))
		s.OK(s.World.Barrier(s.Ctx))
		return
	}
	s.OK(s.World.Barrier(s.Ctx))
	s.OK(win.Lock(s.Ctx, window.Shared, 1))
	s.OK(win.Put([]int64{1}, 1, 0))
	r, err := win.RFlush(1)
	for done := false; !done && err == nil; {
		done, err = r.Test()
	}
	s.OK(err)
	s.OK(win.Unlock(s.Ctx, 1))
}

// serveNothing closes silent in a rank that serves nothing from then on, until serve is closed.
func serveNothing(s *script, silent, serve chan struct{}) {
	job.Of(s.World).Exclude(func() {
		close(silent)
		<-serve
	})
}

// flushUnasked has a flush begin when its target serves nothing and takes no further request. The wait for the flush
// sends the request when the target has responded.
func flushUnasked(s *script, silent, serve chan struct{}) {
	const most = 64
	win := allocate[int64](s, 2)
	s.OK(win.LockAll(s.Ctx))
	s.OK(s.World.Barrier(s.Ctx))
	if s.World.Rank() == 1 {
		serveNothing(s, silent, serve)
	} else {
		<-silent
		var requests [most]window.Request
		results := make([]int64, most)
		for i := range requests {
			var err error
			requests[i], err = win.RGetAccumulate(window.Sum, []int64{1}, results[i:i+1], 1, 1)
			s.OK(err)
			// It leaves by itself.
			done, err := requests[i].Test()
			s.OK(err)
			s.Check(!done, "complete at a rank that has not served it")
		}
		s.OK(win.Accumulate(window.Sum, []int64{7}, 1, 0))
		r, err := win.RFlush(1)
		s.OK(err)
		soon, end := context.WithTimeout(s.Ctx, 10*time.Millisecond) // expires
		err = r.Wait(soon)
		end()
		close(serve)
		s.Fails(err, context.DeadlineExceeded)
		finish(s, r, false)
		for i, request := range requests {
			finish(s, request, true)
			s.Check(results[i] == int64(i), "result %d is %d", i, results[i])
		}
	}
	s.OK(s.World.Barrier(s.Ctx))
	s.Check(s.World.Rank() == 0 || win.Local()[0] == 7, "there is %d", win.Local()[0])
	s.OK(win.UnlockAll(s.Ctx))
	s.OK(win.Close())
}

// flushUnserved has an accumulate sent to a rank that serves nothing from silent until serve: its flush is not complete.
// One before rode with the lock, or there was none.
func flushUnserved(s *script, rode bool, silent, serve chan struct{}) {
	win := allocate[int64](s, 2)
	if rode {
		s.OK(win.Lock(s.Ctx, window.Shared, 1))
		s.OK(win.Accumulate(window.Sum, []int64{7}, 1, 1))
		s.OK(win.Flush(s.Ctx, 1))
	} else {
		s.OK(win.LockAll(s.Ctx))
	}
	s.OK(s.World.Barrier(s.Ctx))
	if s.World.Rank() == 1 {
		serveNothing(s, silent, serve)
	} else {
		<-silent
		s.OK(win.Accumulate(window.Sum, []int64{7}, 1, 0))
		r, err := win.RFlush(1)
		s.OK(err)
		func() {
			defer close(serve)
			// The message comes to the card of rank 1, which says so, in far fewer looks.
			for range 10_000 {
				done, err := r.Test()
				s.OK(err)
				s.Check(!done, "complete at a rank that has not served it")
				runtime.Gosched()
			}
		}()
		finish(s, r, true)
	}
	s.OK(s.World.Barrier(s.Ctx))
	s.Check(s.World.Rank() == 0 || win.Local()[0] == 7, "there is %d", win.Local()[0])
	if rode {
		s.OK(win.Unlock(s.Ctx, 1))
	} else {
		s.OK(win.UnlockAll(s.Ctx))
	}
	s.OK(win.Close())
}

// flushOfDead has a flush piggybacked on the lock request to a rank that dies with it. The wait for the flush returns
// the failure, also when the Unlock has already returned it.
var flushOfDead = register("a flush of one who dies", func(s *script) {
	win := allocate[int64](s, 1)
	if s.World.Rank() == victim {
		s.OK(win.Lock(s.Ctx, window.Exclusive, victim))
	}
	s.OK(s.World.Barrier(s.Ctx))
	var r window.Request
	if s.World.Rank() == 0 {
		s.OK(win.Lock(s.Ctx, window.Shared, victim))
		s.OK(win.Accumulate(window.Sum, []int64{1}, victim, 0))
		var err error
		r, err = win.RFlush(victim)
		s.OK(err)
	}
	s.OK(s.World.Barrier(s.Ctx))
	jobtest.Signal("ready")
	if s.World.Rank() == victim {
		<-s.Ctx.Done()
	}
	for s.World.Err(victim) == nil {
		s.OK(s.Ctx.Err())
		job.Of(s.World).Poll()
		runtime.Gosched()
	}
	if s.World.Rank() == 0 {
		s.Lost(win.Unlock(s.Ctx, victim), victim)
		_, err := r.Test()
		s.Lost(err, victim)
		s.Lost(r.Wait(s.Ctx), victim)
	}
	s.OK(win.Close())
})

func TestRFlushOfDead(t *testing.T) {
	jobtest.StartWith(t, deathRanks, flushOfDead, func(int) []string { return []string{"RMA_DEVICE=tcp"} }).Killed(victim)
}
