package window_test

import (
	"sync/atomic"
	"testing"

	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// sharedCounts has all ranks count on all, by processor atomics where the memory is mapped, by
// operations else, and by both on their own: every number is counted once. What was stored
// before a word was set is read after the word.
var sharedCounts = registerShared("shared memory", []int{1, 2, 3, 5}, func(s *script) {
	const rounds = 200
	n, me := s.World.Size(), s.World.Rank()
	win := allocate[uint64](s, 2+n, window.SingleElement())
	s.OK(win.LockAll(s.Ctx, window.NoCheck))
	for target := range n {
		memory, ok := win.Mapped(target)
		s.Check(ok == s.World.Mapped(target), "rank %d is shared: %v, mapped: %v", target, ok, s.World.Mapped(target))
		s.Check(!ok || len(memory) == win.Len(target), "rank %d shares %d elements of %d", target, len(memory), win.Len(target))
		for range rounds {
			if ok {
				atomic.AddUint64(&memory[0], 1)
			}
			if !ok || target == me {
				var old uint64
				s.OK(win.FetchAndOp(window.Sum, 1, &old, target, 0))
				s.OK(win.Flush(s.Ctx, target))
			}
		}
		if ok {
			memory[2+me] = uint64(100 + me)
			atomic.AddUint64(&memory[1], 1)
		} else {
			s.OK(win.Put([]uint64{uint64(100 + me)}, target, 2+me))
			s.OK(win.Flush(s.Ctx, target))
			var old uint64
			s.OK(win.FetchAndOp(window.Sum, 1, &old, target, 1))
			s.OK(win.Flush(s.Ctx, target))
		}
	}
	own, ok := win.Mapped(me)
	s.Check(ok && &own[0] == &win.Local()[0], "the own part is shared: %v, with %d elements", ok, len(own))
	wait := job.Of(s.World).NewWaiter()
	for atomic.LoadUint64(&own[1]) < uint64(n) {
		s.OK(wait.Pause(s.Ctx))
	}
	wait.Finish()
	s.Check(atomic.LoadUint64(&own[0]) == uint64((n+1)*rounds), "%d were counted, want %d", own[0], (n+1)*rounds)
	for rank, stored := range own[2:] {
		s.Check(stored == uint64(100+rank), "rank %d has stored %d", rank, stored)
	}
	for _, none := range []int{-1, n} {
		_, ok := win.Mapped(none)
		s.Check(!ok, "rank %d of %d is shared", none, n)
	}
	s.OK(win.UnlockAll(s.Ctx))
	s.OK(win.Close())
	_, ok = win.Mapped(me)
	s.Check(!ok, "a closed window is shared")
})

func TestShared(t *testing.T) {
	busy.Acquire(t)
	runShared(t, sharedCounts)
}

// Where cards that are not coherent with the processor do the accumulate family nothing is shared.
func TestSharedBesideCards(t *testing.T) {
	for _, coherent := range []bool{false, true} {
		err := world.Run(t.Context(), 2, scripted(func(s *script) {
			win := allocate[uint64](s, 1, window.CardAtomics())
			_, ok := win.Mapped(s.World.Rank())
			s.Check(ok == coherent, "with cards that are coherent: %v, the own part is shared: %v", coherent, ok)
			s.OK(win.Close())
		}), jobtest.OptionsCards(coherent)...)
		if err != nil {
			t.Error(err)
		}
	}
}

// The memory of a rank that has died is shared no more.
var sharedDeath = register("shared memory of the dead", func(s *script) {
	win := allocate[uint64](s, 1)
	_, ok := win.Mapped(1)
	s.Check(ok, "rank 1 is not shared")
	s.OK(s.World.Barrier(s.Ctx))
	jobtest.Signal("ready")
	if s.World.Rank() == 1 {
		<-s.Ctx.Done()
		return
	}
	wait := job.Of(s.World).NewWaiter()
	defer wait.Finish()
	for job.Of(s.World).FailureCount() == 0 {
		s.OK(wait.Pause(s.Ctx))
	}
	_, ok = win.Mapped(1)
	s.Check(!ok, "the dead rank 1 is shared")
	s.OK(win.Close())
})

func TestSharedDeath(t *testing.T) {
	jobtest.Start(t, 2, sharedDeath).Killed(1)
}
