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
	"github.com/onesided/rma/world"
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
	// used are the ranks that prepare uses. unlocks is how many messages give the lock of each of them back, if callerRank does
	// not map it.
	used    []int
	unlocks int
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
			if cut && !s.World.Mapped(stuckRank) {
				// stuckRank answers no request of freeRank either, whether the lock is held or not.
				return
			}
			ended, end := context.WithCancel(s.Ctx)
			end()
			err := win.LockNow(ended, window.Exclusive, stuckRank)
			if cut {
				s.Fails(err, context.Canceled)
			} else {
				s.OK(errors.Join(err, win.Unlock(s.Ctx, stuckRank)))
			}
		},
		used:    []int{stuckRank},
		unlocks: 1,
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
		c.unlocks = 1
		// The lock of a rank that was told is free, also while that of another is not.
		c.beside = func(s *script, win *window.Window[int64], _ bool) {
			s.OK(win.LockNow(s.Ctx, window.Exclusive, freeRank))
			s.OK(win.Unlock(s.Ctx, freeRank))
		}
	}
	return c
}

// posts is a Post to both other ranks. It notifies freeRank first, which puts before the Post has returned.
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
	caused := func(cause error) context.Context {
		caused, cancel := context.WithCancelCause(ctx)
		cancel(cause)
		return caused
	}
	return map[string]struct {
		ctx context.Context
		err error
	}{
		"canceled":  {canceled, context.Canceled},
		"late":      {late, context.DeadlineExceeded},
		"looked at": {&lookedAt{looking, new(sync.Once), end}, context.Canceled},
		// As a program does that cancels its calls when a rank fails, which may be none that this call needs.
		"canceled for a failure":              {caused(&world.PeerError{Rank: freeRank, Cause: errors.New("x")}), context.Canceled},
		"canceled for a failure by a context": {caused(&world.PeerError{Rank: freeRank, Cause: context.Canceled}), context.Canceled},
		"canceled for a closed World":         {caused(world.ErrClosed), context.Canceled},
	}
}

// cutShort is the body of all cuts, over windows that create makes. blocks reports whether the calls of callerRank have to wait
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
			unlocks := window.CountUnlocks(win)
			s.OK(s.World.Barrier(s.Ctx))
			switch s.World.Rank() {
			case callerRank:
				c.prepare(s, win)
				switch {
				case !blocks:
				case c.full:
					s.crowd(stuckRank)
				default:
					s.tell(stuckRank, jobtest.BusyService)
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
				if !s.World.Mapped(callerRank) {
					got := unlocks(callerRank)
					s.Check(got == c.unlocks, "%d messages gave the lock back, want %d", got, c.unlocks)
				}
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

// TestCallsCutShort checks that Unlock, UnlockAll and Post return the errors of their contexts, whatever they wait for, refuse
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
	switch s.World.Rank() {
	case 0:
		both := groupOf(s, win, victim, 2)
		ended, end := context.WithCancel(s.Ctx)
		end()
		s.crowd(2)
		s.Fails(win.Post(ended, both), context.Canceled)
		jobtest.Signal("ready")
		s.awaitDeath()
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

func TestPostLost(t *testing.T) { runVictim(t, postLost) }

// A rejecting call ends an epoch in which freeRank rejects an operation. It is cut short because stuckRank does not answer.
type rejecting struct {
	name string
	// open is what all ranks do before stuckRank serves nothing, and close what the others do once it serves again.
	open, close func(s *script, win *window.Window[int64])
	call        func(ctx context.Context, win *window.Window[int64]) error
}

var rejectings = []rejecting{
	{
		name: "UnlockAll",
		open: func(s *script, win *window.Window[int64]) {
			if s.World.Rank() == callerRank {
				s.OK(win.LockAll(s.Ctx, window.NoCheck))
			}
		},
		close: func(*script, *window.Window[int64]) {},
		call:  func(ctx context.Context, win *window.Window[int64]) error { return win.UnlockAll(ctx) },
	},
	{
		name: "Complete",
		open: func(s *script, win *window.Window[int64]) {
			if s.World.Rank() != callerRank {
				s.OK(win.Post(s.Ctx, groupOf(s, win, callerRank)))
			}
			s.OK(s.World.Barrier(s.Ctx))
			if s.World.Rank() == callerRank {
				s.OK(win.Start(s.Ctx, groupOf(s, win, freeRank, stuckRank)))
			}
		},
		close: func(s *script, win *window.Window[int64]) { s.OK(win.Wait(s.Ctx)) },
		call:  func(ctx context.Context, win *window.Window[int64]) error { return win.Complete(ctx) },
	},
}

var rejectedCutShort = register("a rejection in a call cut short", func(s *script) {
	later, stop := s.delay()
	defer stop()
	gate := allocate[int64](s, 1, window.Notifications(1))
	s.OK(gate.LockAll(s.Ctx, window.NoCheck))
	goOn := func(rank int) {
		s.OK(gate.PutNotify(nil, rank, 0, 0))
		s.OK(gate.Flush(s.Ctx, rank))
	}
	ended, end := context.WithCancel(s.Ctx)
	end()
	for _, r := range rejectings {
		win := allocate[int64](s, 1)
		r.open(s, win)
		s.OK(s.World.Barrier(s.Ctx))
		switch s.World.Rank() {
		case callerRank:
			var got [2]int64
			s.OK(win.FetchAndOp(window.Sum, 1, &got[0], freeRank, 0))
			s.OK(window.Reject(win, freeRank))
			s.tell(stuckRank, jobtest.BusyService)
			s.OK(win.FetchAndOp(window.Sum, 1, &got[1], stuckRank, 0))
			var rejected *world.RejectionError
			for !window.Keeps(win) {
				err := r.call(ended, win)
				s.Check(errors.Is(err, context.Canceled) && !errors.As(err, &rejected), "%s cut short: error is %v", r.name, err)
			}
			goOn(freeRank)
			err := r.call(s.Ctx, win)
			s.Check(errors.As(err, &rejected) && rejected.Rank == freeRank && !errors.Is(err, context.Canceled), "%s that continues: error is %v", r.name, err)
		case freeRank:
			s.OK(gate.WaitNotify(s.Ctx, 0, 1))
			goOn(stuckRank)
		case stuckRank:
			s.OK(gate.WaitNotify(s.Ctx, 0, 1))
			later.Store(true)
		}
		if s.World.Rank() != callerRank {
			r.close(s, win)
		}
		s.OK(s.World.Barrier(s.Ctx))
		later.Store(false)
		if s.World.Rank() != callerRank {
			s.Check(win.Local()[0] == 1, "the element is %d, want 1", win.Local()[0])
		}
		s.OK(win.Close())
	}
	s.OK(gate.UnlockAll(s.Ctx))
	s.OK(gate.Close())
})

// TestRejectedCutShort checks that the call which ends an epoch returns the rejections that a call before it, cut short, has
// taken.
func TestRejectedCutShort(t *testing.T) { jobtest.Apart(t, cutRanks, rejectedCutShort) }

// awaitDeath returns when this rank knows that the victim has failed.
func (s *script) awaitDeath() {
	for s.World.Err(victim) == nil {
		job.Of(s.World).Poll()
		runtime.Gosched()
	}
}

// runVictim runs a body of deathRanks ranks of TCP. All signal "ready", then the victim is killed. Rank 0 signals "cut short",
// and then rank 2, which has signaled "stuck" and holds up what comes from rank 0, goes on before rank 0 does.
func runVictim(t *testing.T, body string) {
	t.Helper()
	job := jobtest.StartWith(t, deathRanks, body, func(int) []string { return []string{"RMA_DEVICE=tcp"} })
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

// unlockAllLost has the victim die before an UnlockAll that is cut short, because rank 2 does not answer: the error names no
// lost rank, since the epoch is open, and the UnlockAll that continues returns the failure.
var unlockAllLost = register("an UnlockAll cut short, of which a rank dies", func(s *script) {
	later, stop := s.delay()
	defer stop()
	win := allocate[int64](s, 1)
	switch s.World.Rank() {
	case 0:
		s.OK(win.LockAll(s.Ctx, window.NoCheck))
		s.OK(win.Put([]int64{1}, victim, 0))
		s.OK(win.Flush(s.Ctx, victim))
		s.OK(win.Put([]int64{1}, victim, 0))
		s.tell(2, jobtest.BusyService)
		s.OK(win.Put([]int64{1}, 2, 0))
		jobtest.Signal("ready")
		s.awaitDeath()
		ended, end := context.WithCancel(s.Ctx)
		end()
		err := win.UnlockAll(ended)
		var lost *world.PeerError
		s.Check(errors.Is(err, context.Canceled) && !errors.As(err, &lost), "error is %v", err)
		s.OK(jobtest.Hold("cut short"))
		s.Lost(win.UnlockAll(s.Ctx), victim)
	case victim:
		jobtest.Signal("ready")
		<-s.Ctx.Done()
	default:
		jobtest.Signal("ready")
		s.OK(jobtest.Hold("stuck"))
		later.Store(true)
	}
	s.OK(win.Close())
})

func TestUnlockAllLost(t *testing.T) { runVictim(t, unlockAllLost) }

// postLostClosed is postLost without a second Post: an exposure to a rank that has failed counts as closed, also if its Post
// was cut short.
var postLostClosed = register("a Post cut short, of which a rank dies, and a Close", func(s *script) {
	later, stop := s.delay()
	defer stop()
	win, other := allocate[int64](s, 1), allocate[int64](s, 1)
	switch s.World.Rank() {
	case 0:
		ended, end := context.WithCancel(s.Ctx)
		end()
		s.crowd(2)
		s.Fails(win.Post(ended, groupOf(s, win, victim, 2)), context.Canceled)
		s.Fails(other.Post(ended, groupOf(s, other, 2)), context.Canceled)
		jobtest.Signal("ready")
		s.awaitDeath()
		// This exposure is to no rank that has failed.
		s.Fails(other.Close(), window.ErrEpochOpen)
		s.Fails(other.Wait(s.Ctx), window.ErrBusy)
		s.OK(jobtest.Hold("cut short"))
		s.OK(other.Post(s.Ctx, groupOf(s, other, 2)))
		s.OK(other.Wait(s.Ctx))
	case victim:
		jobtest.Signal("ready")
		<-s.Ctx.Done()
	default:
		jobtest.Signal("ready")
		s.OK(jobtest.Hold("stuck"))
		later.Store(true)
		s.OK(other.Start(s.Ctx, groupOf(s, other, 0)))
		s.OK(other.Complete(s.Ctx))
	}
	s.OK(other.Close())
	s.OK(win.Close())
})

func TestPostLostClosed(t *testing.T) { runVictim(t, postLostClosed) }

// A waitingCall is a call of rank 0 that waits for rank 1. hold is what rank 1 does before the call, and release what it
// does so that the call can end.
type waitingCall struct {
	name                   string
	prepare, hold, release func(s *script, win *window.Window[int64])
	call                   func(ctx context.Context, s *script, win *window.Window[int64]) error
	// after ends the epoch of rank 0. far: the call waits only if the ranks share no memory, near: only if they share it.
	// closes: it closes the window.
	after             func(s *script, win *window.Window[int64])
	far, near, closes bool
}

func lockOwn(s *script, win *window.Window[int64])   { s.OK(win.LockNow(s.Ctx, window.Exclusive, 1)) }
func unlockOwn(s *script, win *window.Window[int64]) { s.OK(win.Unlock(s.Ctx, 1)) }

// request is a Put to rank 1 under a lock that rank 1 holds itself.
func request(s *script, win *window.Window[int64]) (r window.Request) {
	s.OK(win.Lock(s.Ctx, window.Exclusive, 1))
	r, err := win.RPut([]int64{1}, 1, 0)
	s.OK(err)
	return r
}

// waitingCalls are all of them. Those that wait for requests keep them beside the window.
func waitingCalls() []waitingCall {
	requests := make(map[*window.Window[int64]]window.Request)
	ofRequest := func(name string, call func(ctx context.Context, r window.Request) error) waitingCall {
		return waitingCall{
			name: name, hold: lockOwn, release: unlockOwn, far: true,
			prepare: func(s *script, win *window.Window[int64]) { requests[win] = request(s, win) },
			call: func(ctx context.Context, _ *script, win *window.Window[int64]) error {
				return call(ctx, requests[win])
			},
			after: unlockOwn,
		}
	}
	underLock := func(name string, call func(ctx context.Context, win *window.Window[int64]) error, after func(s *script, win *window.Window[int64])) waitingCall {
		return waitingCall{
			name: name, hold: lockOwn, release: unlockOwn, far: true, after: after,
			prepare: func(s *script, win *window.Window[int64]) { request(s, win) },
			call: func(ctx context.Context, _ *script, win *window.Window[int64]) error {
				return call(ctx, win)
			},
		}
	}
	return []waitingCall{
		{
			name:    "Allocate",
			call:    func(ctx context.Context, s *script, _ *window.Window[int64]) error { return allocated(ctx, s) },
			release: func(s *script, _ *window.Window[int64]) { s.OK(allocated(s.Ctx, s)) },
		},
		{
			name: "Fence",
			call: func(ctx context.Context, _ *script, win *window.Window[int64]) error {
				return win.Fence(ctx, window.NoSucceed)
			},
			release: func(s *script, win *window.Window[int64]) { s.OK(win.Fence(s.Ctx, window.NoSucceed)) },
		},
		{
			name: "Start", near: true,
			call: func(ctx context.Context, s *script, win *window.Window[int64]) error {
				return win.Start(ctx, groupOf(s, win, 1))
			},
			release: func(s *script, win *window.Window[int64]) {
				s.OK(errors.Join(win.Post(s.Ctx, groupOf(s, win, 0)), win.Wait(s.Ctx)))
			},
			after: func(s *script, win *window.Window[int64]) { s.OK(win.Complete(s.Ctx)) },
		},
		{
			name: "Complete", far: true,
			prepare: func(s *script, win *window.Window[int64]) {
				s.OK(win.Start(s.Ctx, groupOf(s, win, 1)))
				s.OK(win.Get(make([]int64, 1), 1, 0))
			},
			call: func(ctx context.Context, _ *script, win *window.Window[int64]) error { return win.Complete(ctx) },
			release: func(s *script, win *window.Window[int64]) {
				s.OK(errors.Join(win.Post(s.Ctx, groupOf(s, win, 0)), win.Wait(s.Ctx)))
			},
		},
		{
			name:    "Wait",
			prepare: func(s *script, win *window.Window[int64]) { s.OK(win.Post(s.Ctx, groupOf(s, win, 1))) },
			call:    func(ctx context.Context, _ *script, win *window.Window[int64]) error { return win.Wait(ctx) },
			release: func(s *script, win *window.Window[int64]) {
				s.OK(errors.Join(win.Start(s.Ctx, groupOf(s, win, 0)), win.Complete(s.Ctx)))
			},
		},
		{
			name: "LockNow", hold: lockOwn, release: unlockOwn, after: unlockOwn,
			call: func(ctx context.Context, _ *script, win *window.Window[int64]) error {
				return win.LockNow(ctx, window.Shared, 1)
			},
		},
		{
			name: "LockAll", hold: lockOwn, release: unlockOwn,
			call:  func(ctx context.Context, _ *script, win *window.Window[int64]) error { return win.LockAll(ctx) },
			after: func(s *script, win *window.Window[int64]) { s.OK(win.UnlockAll(s.Ctx)) },
		},
		underLock("Flush", func(ctx context.Context, win *window.Window[int64]) error { return win.Flush(ctx, 1) }, unlockOwn),
		underLock("FlushAll", func(ctx context.Context, win *window.Window[int64]) error { return win.FlushAll(ctx) }, unlockOwn),
		underLock("FlushLocal", func(ctx context.Context, win *window.Window[int64]) error { return win.FlushLocal(ctx, 1) }, unlockOwn),
		underLock("FlushLocalAll", func(ctx context.Context, win *window.Window[int64]) error { return win.FlushLocalAll(ctx) }, unlockOwn),
		underLock("Unlock", func(ctx context.Context, win *window.Window[int64]) error { return win.Unlock(ctx, 1) }, nil),
		ofRequest("Request.Wait", func(ctx context.Context, r window.Request) error { return r.Wait(ctx) }),
		ofRequest("WaitAll", func(ctx context.Context, r window.Request) error { return window.WaitAll(ctx, r, r) }),
		ofRequest("WaitAny", func(ctx context.Context, r window.Request) error {
			_, err := window.WaitAny(ctx, r, r)
			return err
		}),
		ofRequest("Completed", func(ctx context.Context, r window.Request) error {
			for _, err := range window.Completed(ctx, r) {
				return err
			}
			return nil
		}),
		{
			name: "CloseContext", closes: true,
			call: func(ctx context.Context, _ *script, win *window.Window[int64]) error { return win.CloseContext(ctx) },
		},
		{
			name: "WaitNotify",
			call: func(ctx context.Context, _ *script, win *window.Window[int64]) error {
				return win.WaitNotify(ctx, 0, 1)
			},
			release: func(s *script, win *window.Window[int64]) {
				s.OK(errors.Join(win.LockAll(s.Ctx, window.NoCheck), win.PutNotify(nil, 0, 0, 0), win.UnlockAll(s.Ctx)))
			},
		},
	}
}

// allocated makes a window and closes it.
func allocated(ctx context.Context, s *script) error {
	win, err := window.Allocate[int64](ctx, s.World, 1)
	if err != nil {
		return err
	}
	return win.CloseContext(s.Ctx)
}

// TestCallsCutForACause checks that each call which is cut short may be made again, whatever the cause of its context: it may be
// an error that would end the call for good, if the call itself had come by it.
func TestCallsCutForACause(t *testing.T) {
	causes := []error{
		nil, &world.PeerError{Rank: 1, Cause: errors.New("x")}, &world.PeerError{Rank: 1, Cause: context.Canceled},
		world.ErrClosed, world.ErrMismatch, world.ErrBusy, world.ErrUnfinished, window.ErrClosed, window.ErrEpochOpen,
	}
	for _, far := range []bool{false, true} {
		for _, b := range waitingCalls() {
			if b.far && !far || b.near && far {
				continue
			}
			t.Run(fmt.Sprintf("%s/%t", b.name, far), func(t *testing.T) {
				var options []world.Option
				if far {
					options = jobtest.OptionsApart()
				}
				cut := make(chan struct{})
				do := func(f func(*script, *window.Window[int64]), s *script, win *window.Window[int64]) {
					if f != nil {
						f(s, win)
					}
				}
				err := world.Run(t.Context(), 2, scripted(func(s *script) {
					win := allocate[int64](s, 1)
					if s.World.Rank() == 1 {
						do(b.hold, s, win)
						s.OK(s.World.Barrier(s.Ctx))
						<-cut
						do(b.release, s, win)
						s.OK(win.Close())
						return
					}
					goOn := sync.OnceFunc(func() { close(cut) })
					defer goOn()
					s.OK(s.World.Barrier(s.Ctx))
					do(b.prepare, s, win)
					for _, cause := range causes {
						ctx, cancel := context.WithCancelCause(s.Ctx)
						cancel(cause)
						err := b.call(ctx, s, win)
						s.Check(errors.Is(err, context.Canceled) && (cause == nil || errors.Is(err, cause)), "canceled for %v: error is %v", cause, err)
					}
					goOn()
					s.OK(b.call(s.Ctx, s, win))
					do(b.after, s, win)
					if !b.closes {
						s.OK(win.Close())
					}
				}), options...)
				if err != nil {
					t.Error(err)
				}
			})
		}
	}
}
