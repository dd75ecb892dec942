package window_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/onesided/rma/epoch"
	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/window"
)

// In the tests of calls whose contexts end, rank callerRank makes the call. It needs rank stuckRank, which serves nothing of it
// until the call was cut short, and rank freeRank, which serves all. On two hosts callerRank and freeRank share one.
const (
	freeRank = iota
	stuckRank
	callerRank

	cutRanks
)

// A cut is a call that its context ends, and another that continues it.
type cut struct {
	name string
	// full: there is no room on the way to stuckRank. Otherwise only replies are missing.
	full bool
	// prepare is what callerRank does before stuckRank serves nothing, and call the call.
	prepare func(s *script, win *window.Window[int64])
	call    func(ctx context.Context, s *script, win *window.Window[int64]) error
	// refused is what callerRank finds between the two calls, and beside what freeRank does then; cut is whether the first was
	// cut short.
	refused func(s *script, win *window.Window[int64])
	beside  func(s *script, win *window.Window[int64], cut bool)
	// after is what stuckRank does once it serves again, and callerRank and freeRank when the call has returned.
	after func(s *script, win *window.Window[int64])
	// used are the ranks that prepare uses.
	used []int
}

// longElements are more than a message holds.
const longElements = 1 << 14

// use operates on a rank, by short and long operations. The sums are wrong if they are done twice.
func use(s *script, win *window.Window[int64], rank int) {
	s.OK(win.Accumulate(window.Sum, []int64{5}, rank, 0))
	s.OK(win.Put(pattern(callerRank, rank, longElements), rank, 1))
	s.OK(win.Accumulate(window.Sum, []int64{8}, rank, 1+longElements))
}

// wasUsed checks the own part, on which use has operated.
func wasUsed(s *script, win *window.Window[int64]) {
	want := append([]int64{5}, pattern(callerRank, s.World.Rank(), longElements)...)
	equalElements(s, "the part", win.Local(), append(want, 8))
}

// canUse checks that an epoch of Lock to a rank can begin and end.
func canUse(s *script, win *window.Window[int64], rank int) {
	got := make([]int64, 1)
	s.OK(win.Lock(s.Ctx, window.Exclusive, rank))
	s.OK(win.Get(got, rank, 0))
	s.OK(win.Unlock(s.Ctx, rank))
	s.Check(got[0] == 0, "got %d, want 0", got[0])
}

// closedTo checks that no operation on a rank is legal, nor what would need another epoch.
func closedTo(s *script, win *window.Window[int64], rank int) {
	s.Fails(win.Put([]int64{-1}, rank, 0), epoch.ErrChanging)
	s.Fails(win.Flush(s.Ctx, rank), window.ErrBusy)
	s.Fails(win.Fence(s.Ctx), window.ErrEpochOpen)
	s.Fails(win.Start(s.Ctx, groupOf(s, win, freeRank)), window.ErrEpochOpen)
	s.Fails(win.Close(), window.ErrEpochOpen)
}

func unlocks(name string, full bool) cut {
	return cut{
		name: name, full: full,
		prepare: func(s *script, win *window.Window[int64]) {
			s.OK(win.LockNow(s.Ctx, window.Exclusive, stuckRank))
			use(s, win, stuckRank)
		},
		call: func(ctx context.Context, s *script, win *window.Window[int64]) error {
			return win.Unlock(ctx, stuckRank)
		},
		refused: func(s *script, win *window.Window[int64]) {
			closedTo(s, win, stuckRank)
			s.Fails(win.Lock(s.Ctx, window.Shared, stuckRank), window.ErrEpochOpen)
			if !full {
				// A call that waits sends what is queued, also to others.
				canUse(s, win, freeRank)
			}
		},
		// The lock is held until all is complete that was done under it.
		beside: func(s *script, win *window.Window[int64], cut bool) {
			ended, end := context.WithCancel(s.Ctx)
			end()
			err := win.LockNow(ended, window.Exclusive, stuckRank)
			if cut {
				s.Fails(err, context.Canceled)
			} else {
				s.OK(errors.Join(err, win.Unlock(s.Ctx, stuckRank)))
			}
		},
		used: []int{stuckRank},
	}
}

func unlocksAll(name string, full bool, asserts ...window.Assert) cut {
	c := cut{
		name: name, full: full,
		prepare: func(s *script, win *window.Window[int64]) {
			s.OK(win.LockAll(s.Ctx, asserts...))
			for rank := range cutRanks {
				use(s, win, rank)
			}
		},
		call: func(ctx context.Context, s *script, win *window.Window[int64]) error { return win.UnlockAll(ctx) },
		refused: func(s *script, win *window.Window[int64]) {
			for rank := range cutRanks {
				closedTo(s, win, rank)
			}
			s.Fails(win.FlushAll(s.Ctx), window.ErrBusy)
			s.Fails(win.LockAll(s.Ctx), window.ErrEpochOpen)
			s.Fails(win.Lock(s.Ctx, window.Shared, freeRank), window.ErrEpochOpen)
			s.Fails(win.Unlock(s.Ctx, freeRank), window.ErrNotLocked)
		},
		used: []int{freeRank, stuckRank, callerRank},
	}
	if len(asserts) == 0 {
		// The lock of a rank that was told is free, also while that of another is not.
		c.beside = func(s *script, win *window.Window[int64], _ bool) {
			s.OK(win.LockNow(s.Ctx, window.Exclusive, freeRank))
			s.OK(win.Unlock(s.Ctx, freeRank))
		}
	}
	return c
}

// posts is a Post to both others, of which freeRank is told first, and puts before the call has returned.
var posts = cut{
	name: "Post without room", full: true,
	prepare: func(*script, *window.Window[int64]) {},
	call: func(ctx context.Context, s *script, win *window.Window[int64]) error {
		return win.Post(ctx, groupOf(s, win, freeRank, stuckRank))
	},
	refused: func(s *script, win *window.Window[int64]) {
		for _, ranks := range [][]int{nil, {freeRank}, {stuckRank}, {freeRank, stuckRank, callerRank}} {
			err := win.Post(s.Ctx, groupOf(s, win, ranks...))
			var illegal *epoch.CallError
			s.Check(errors.As(err, &illegal) && errors.Is(err, window.ErrEpochOpen), "Post to %v: error is %v, want an *epoch.CallError", ranks, err)
		}
		s.Fails(win.Wait(s.Ctx), window.ErrBusy)
		_, err := win.Test()
		s.Fails(err, window.ErrBusy)
		s.Fails(win.Fence(s.Ctx), window.ErrEpochOpen)
		s.Fails(win.Close(), window.ErrEpochOpen)
		canUse(s, win, freeRank)
	},
	beside: func(s *script, win *window.Window[int64], _ bool) { putTo(11)(s, win) },
	after: func(s *script, win *window.Window[int64]) {
		switch s.World.Rank() {
		case stuckRank:
			putTo(12)(s, win)
		case callerRank:
			s.OK(win.Wait(s.Ctx))
			equal(s, "what was put", win.Local()[:2], []int64{11, 12})
			// The next exposure has the next number at both.
			s.OK(win.Post(s.Ctx, groupOf(s, win, freeRank, stuckRank)))
			s.OK(win.Wait(s.Ctx))
			equal(s, "what was put to the next exposure", win.Local()[:2], []int64{21, 21})
		}
		if s.World.Rank() != callerRank {
			putTo(21)(s, win)
		}
	},
}

// putTo has a rank put a value to its element of callerRank, in a Start epoch.
func putTo(value int64) func(s *script, win *window.Window[int64]) {
	return func(s *script, win *window.Window[int64]) {
		s.OK(win.Start(s.Ctx, groupOf(s, win, callerRank)))
		s.OK(win.Put([]int64{value}, callerRank, s.World.Rank()))
		s.OK(win.Complete(s.Ctx))
	}
}

var cuts = []cut{
	unlocks("Unlock", false),
	unlocks("Unlock without room", true),
	unlocksAll("UnlockAll", false),
	unlocksAll("UnlockAll without room", true),
	unlocksAll("UnlockAll of NoCheck", false, window.NoCheck),
	unlocksAll("UnlockAll of NoCheck without room", true, window.NoCheck),
	posts,
}

// ends are contexts that have ended, or end when a call looks at them for the first time, and the errors of calls.
func ends(ctx context.Context) map[string]struct {
	ctx context.Context
	err error
} {
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	late, stop := context.WithDeadline(ctx, time.Unix(0, 0))
	stop()
	looking, end := context.WithCancel(ctx)
	return map[string]struct {
		ctx context.Context
		err error
	}{
		"canceled":  {canceled, context.Canceled},
		"late":      {late, context.DeadlineExceeded},
		"looked at": {&lookedAt{looking, new(sync.Once), end}, context.Canceled},
	}
}

// cutShort is the body of all cuts, over windows that create makes. blocks tells whether the calls of callerRank have to wait
// for stuckRank.
func cutShort(s *script, blocks bool, create func(count int) *window.Window[int64]) {
	later, stop := s.delay()
	defer stop()
	gate := allocate[int64](s, 1, window.Notifications(1))
	s.OK(gate.LockAll(s.Ctx, window.NoCheck))
	goOn := func(rank int) {
		s.OK(gate.PutNotify(nil, rank, 0, 0))
		s.OK(gate.Flush(s.Ctx, rank))
	}
	for _, c := range cuts {
		err := jobtest.Checked(func() {
			win := create(1 + longElements + 1)
			s.OK(s.World.Barrier(s.Ctx))
			switch s.World.Rank() {
			case callerRank:
				c.prepare(s, win)
				switch {
				case !blocks:
				case c.full:
					s.crowd(stuckRank)
				default:
					s.tell(stuckRank, busyService)
				}
				done := false
				for name, end := range ends(s.Ctx) {
					if done {
						break
					}
					err := c.call(end.ctx, s, win)
					done = err == nil
					s.Check(done != blocks && (done || errors.Is(err, end.err)), "with a context that is %s: error is %v", name, err)
				}
				if !done {
					c.refused(s, win)
				}
				goOn(freeRank)
				if !done {
					s.OK(c.call(s.Ctx, s, win))
				}
			case freeRank:
				s.OK(gate.WaitNotify(s.Ctx, 0, 1))
				if c.beside != nil {
					c.beside(s, win, blocks)
				}
				goOn(stuckRank)
			case stuckRank:
				s.OK(gate.WaitNotify(s.Ctx, 0, 1))
				later.Store(true)
			}
			if c.after != nil {
				c.after(s, win)
			}
			s.OK(s.World.Barrier(s.Ctx))
			later.Store(false)
			// No lock is left, and each was given back once.
			s.OK(win.LockNow(s.Ctx, window.Exclusive, s.World.Rank()))
			if slices.Contains(c.used, s.World.Rank()) {
				wasUsed(s, win)
			}
			s.OK(win.Unlock(s.Ctx, s.World.Rank()))
			s.OK(s.World.Barrier(s.Ctx))
			s.OK(win.Close())
		})
		if err != nil {
			s.OK(fmt.Errorf("%s: %w", c.name, err))
		}
	}
	s.OK(gate.UnlockAll(s.Ctx))
	s.OK(gate.Close())
}

var callsCutShort = registerShared("calls cut short", []int{cutRanks}, func(s *script) {
	cutShort(s, !s.World.Mapped(stuckRank), func(count int) *window.Window[int64] { return allocate[int64](s, count) })
})

// TestCallsCutShort looks that Unlock, UnlockAll and Post return the errors of their contexts, whatever they wait for, refuse
// what does not continue them, and are continued: what was done is done once, and each lock is given back once.
func TestCallsCutShort(t *testing.T) {
	busy.Acquire(t)
	runShared(t, callsCutShort)
	t.Run("cards", func(t *testing.T) { jobtest.Cards(t, cutRanks, callsCutShort, false) })
	t.Run("coherent cards", func(t *testing.T) { jobtest.Cards(t, cutRanks, callsCutShort, true) })
	t.Run("simulated", func(t *testing.T) { jobtest.Simulated(t, cutRanks, callsCutShort) })
}

// callsHasty has all ranks end epochs by calls whose contexts have ended, until one succeeds: they are cut short wherever
// they wait.
var callsHasty = registerShared("calls cut short again and again", []int{2, 3}, func(s *script) {
	const rounds = 20
	size, rank := s.World.Size(), s.World.Rank()
	win, everyone := allocate[int64](s, 2+size), make([]int, s.World.Size())
	for i := range everyone {
		everyone[i] = i
	}
	all := groupOf(s, win, everyone...)
	ended, end := context.WithCancel(s.Ctx)
	end()
	hasty := func(call func(ctx context.Context) error) {
		err := call(ended)
		for errors.Is(err, context.Canceled) {
			err = call(ended)
		}
		s.OK(err)
	}
	for round := range rounds {
		for target := range size {
			var got [1]int64
			s.OK(win.Lock(s.Ctx, window.Exclusive, target))
			s.OK(win.Get(got[:], target, 0))
			s.OK(win.Flush(s.Ctx, target))
			s.OK(win.Put([]int64{got[0] + 1}, target, 0))
			hasty(func(ctx context.Context) error { return win.Unlock(ctx, target) })
			s.OK(win.Lock(s.Ctx, window.Exclusive, target))
			s.OK(win.Accumulate(window.Sum, []int64{1}, target, 1))
			hasty(func(ctx context.Context) error { return win.Unlock(ctx, target) })
		}
		s.OK(win.LockAll(s.Ctx))
		for target := range size {
			s.OK(win.Accumulate(window.Sum, []int64{1}, target, 1))
		}
		hasty(win.UnlockAll)
		hasty(func(ctx context.Context) error { return win.Post(ctx, all) })
		s.OK(win.Start(s.Ctx, all))
		for target := range size {
			s.OK(win.Put([]int64{int64(round)}, target, 2+rank))
		}
		hasty(win.Complete)
		hasty(win.Wait)
		for from := range size {
			s.Check(win.Local()[2+from] == int64(round), "round %d: rank %d has put %d", round, from, win.Local()[2+from])
		}
	}
	s.OK(s.World.Barrier(s.Ctx))
	equal(s, "counts of what was done under locks", win.Local()[:2], []int64{int64(rounds * size), int64(2 * rounds * size)})
	s.OK(win.Close())
})

func TestCallsHasty(t *testing.T) {
	busy.Acquire(t)
	runShared(t, callsHasty)
}

// postLost has the victim die after a Post that was cut short has notified it, but not rank 2: the Post that continues
// tells of the failure, and rank 2 has its exposure.
var postLost = register("a Post cut short, of which a rank dies", func(s *script) {
	later, stop := s.delay()
	defer stop()
	win := allocate[int64](s, 1)
	awaitDeath := func() {
		for s.World.Err(victim) == nil {
			job.Of(s.World).Poll()
			runtime.Gosched()
		}
	}
	switch s.World.Rank() {
	case 0:
		both := groupOf(s, win, victim, 2)
		ended, end := context.WithCancel(s.Ctx)
		end()
		s.crowd(2)
		s.Fails(win.Post(ended, both), context.Canceled)
		jobtest.Signal("ready")
		awaitDeath()
		s.Fails(win.Post(ended, both), context.Canceled)
		s.OK(jobtest.Hold("cut short"))
		s.Lost(win.Post(s.Ctx, both), victim)
		s.Lost(win.Wait(s.Ctx), victim)
	case victim:
		jobtest.Signal("ready")
		<-s.Ctx.Done()
	default:
		jobtest.Signal("ready")
		s.OK(jobtest.Hold("stuck"))
		later.Store(true)
		s.OK(win.Start(s.Ctx, groupOf(s, win, 0)))
		s.OK(win.Put([]int64{1}, 0, 0))
		s.OK(win.Complete(s.Ctx))
	}
	s.OK(win.Close())
})

func TestPostLost(t *testing.T) {
	job := jobtest.StartWith(t, deathRanks, postLost, func(int) []string { return []string{"RMA_DEVICE=tcp"} })
	job.AwaitAll("ready")
	job.Kill(victim)
	job.Await(0, "cut short")
	job.Await(2, "stuck")
	job.Release(2)
	job.Release(0)
	for rank, err := range job.Wait() {
		if rank != victim && err != nil {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
}
