package window_test

import (
	"context"
	"errors"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/onesided/rma/epoch"
	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/window"
)

// A block is a call that waits for another rank.
type block struct {
	name string
	// before is done by rank 1 to make rank 0 wait, after to let it go on.
	before, after func(s *script, win *window.Window[int64])
	// call blocks in rank 0; done ends what it opened.
	call func(ctx context.Context, s *script, win *window.Window[int64]) error
	done func(s *script, win *window.Window[int64])
}

func nothing(*script, *window.Window[int64]) {}

var blocks = []block{
	{
		name:   "Fence",
		before: nothing,
		after: func(s *script, win *window.Window[int64]) {
			s.OK(win.Fence(s.Ctx, window.NoSucceed))
		},
		call: func(ctx context.Context, s *script, win *window.Window[int64]) error {
			return win.Fence(ctx, window.NoSucceed)
		},
		done: nothing,
	},
	{
		name:   "Start",
		before: nothing,
		after: func(s *script, win *window.Window[int64]) {
			s.OK(win.Post(s.Ctx, groupOf(s, win, 0)))
			s.OK(win.Wait(s.Ctx))
		},
		// Over a link the Complete waits, with more than fits a message.
		call: func(ctx context.Context, s *script, win *window.Window[int64]) error {
			err := win.Start(ctx, groupOf(s, win, 1))
			if err == nil {
				s.OK(win.Put(make([]int64, blockedElements), 1, 0))
			} else if !errors.Is(err, epoch.ErrEpochOpen) {
				return err
			}
			return win.Complete(ctx)
		},
		done: nothing,
	},
	{
		name:   "Wait",
		before: nothing,
		after: func(s *script, win *window.Window[int64]) {
			s.OK(win.Start(s.Ctx, groupOf(s, win, 0)))
			s.OK(win.Complete(s.Ctx))
		},
		call: func(ctx context.Context, s *script, win *window.Window[int64]) error {
			if open, err := win.Test(); err == nil {
				s.Check(!open, "the exposure has ended")
			} else {
				s.OK(win.Post(s.Ctx, groupOf(s, win, 1)))
			}
			return win.Wait(ctx)
		},
		done: nothing,
	},
	{
		name:   "Lock",
		before: func(s *script, win *window.Window[int64]) { s.OK(take(s.Ctx, win, window.Exclusive, 0)) },
		after:  func(s *script, win *window.Window[int64]) { s.OK(win.Unlock(s.Ctx, 0)) },
		call: func(ctx context.Context, s *script, win *window.Window[int64]) error {
			return take(ctx, win, window.Exclusive, 0)
		},
		done: func(s *script, win *window.Window[int64]) { s.OK(win.Unlock(s.Ctx, 0)) },
	},
	{
		name:   "exclusive Lock of readers",
		before: func(s *script, win *window.Window[int64]) { s.OK(take(s.Ctx, win, window.Shared, 0)) },
		after:  func(s *script, win *window.Window[int64]) { s.OK(win.Unlock(s.Ctx, 0)) },
		call: func(ctx context.Context, s *script, win *window.Window[int64]) error {
			return take(ctx, win, window.Exclusive, 0)
		},
		done: func(s *script, win *window.Window[int64]) { s.OK(win.Unlock(s.Ctx, 0)) },
	},
	{
		name:   "LockAll",
		before: func(s *script, win *window.Window[int64]) { s.OK(take(s.Ctx, win, window.Exclusive, 1)) },
		after:  func(s *script, win *window.Window[int64]) { s.OK(win.Unlock(s.Ctx, 1)) },
		call: func(ctx context.Context, s *script, win *window.Window[int64]) error {
			return win.LockAll(ctx)
		},
		done: func(s *script, win *window.Window[int64]) { s.OK(win.UnlockAll(s.Ctx)) },
	},
	{
		name:   "WaitNotify",
		before: nothing,
		after: func(s *script, win *window.Window[int64]) {
			s.OK(win.LockAll(s.Ctx))
			s.OK(win.PutNotify([]int64{1}, 0, 0, 3))
			s.OK(win.UnlockAll(s.Ctx))
		},
		call: func(ctx context.Context, s *script, win *window.Window[int64]) error {
			return win.WaitNotify(ctx, 3, 1)
		},
		done: nothing,
	},
}

func init() {
	for _, b := range blocks {
		register("blocked in "+b.name, func(s *script) { blocked(s, b) })
	}
}

const blockedElements = 1 << 14

// blocked has rank 0 wait: its context has ended before, its context ends during the wait, and until it gets what it waits
// for. Rank 1 knows by the barriers when rank 0 begins, and when it waits for good.
func blocked(s *script, b block) {
	win := allocate[int64](s, blockedElements)
	s.Sleeps(0, b.name, func() {
		if s.World.Rank() == 1 {
			b.before(s, win)
			s.Barrier()
			return
		}
		s.Barrier()
		ended, cancel := context.WithCancelCause(s.Ctx)
		cause := errors.New("the program has had enough")
		cancel(cause)
		s.Fails(b.call(ended, s, win), cause)
		soon, cancelSoon := context.WithTimeout(s.Ctx, 20*time.Millisecond) // expires
		defer cancelSoon()
		s.Fails(b.call(soon, s, win), context.DeadlineExceeded)
	}, func(span time.Duration) {
		if s.World.Rank() == 1 {
			time.Sleep(span) // computes
			b.after(s, win)
			return
		}
		s.OK(b.call(s.Ctx, s, win))
		b.done(s, win)
	})
	s.OK(win.Close())
}

// TestBlocked waits in every blocking call.
func TestBlocked(t *testing.T) {
	for turn, b := range blocks {
		t.Run(b.name, func(t *testing.T) { runInSome(t, turn, "blocked in "+b.name, 2) })
	}
}

// nothingAllocated counts what operations and synchronization allocate, in rank 0
// while the other ranks do the same.
var nothingAllocated = register("nothing allocated", func(s *script) {
	win := allocate[int64](s, 100)
	single := allocate[float64](s, 100, window.SingleElement())
	one, many, result := []int64{1}, make([]int64, 90), make([]int64, 90)
	places := make([]int, len(many))
	var old int64
	var oldFloat float64
	strided, contiguous := window.Strided(5, 2, 4), window.Contiguous(10)
	next := (s.World.Rank() + 1) % s.World.Size()
	group := groupOf(s, win, next)
	before := groupOf(s, win, (s.World.Rank()+s.World.Size()-1)%s.World.Size())
	// A wait that comes to sleep under a context which can end allocates for that.
	ctx := context.Background()
	turn := func() {
		s.OK(win.LockAll(ctx))
		s.OK(single.LockAll(ctx))
		for target := range s.World.Size() {
			s.OK(win.Put(one, target, 3))
			s.OK(win.Put(many, target, 3))
			s.OK(win.Get(result, target, 3))
			s.OK(win.Accumulate(window.Sum, one, target, 5))
			s.OK(win.Accumulate(window.Max, many, target, 5))
			s.OK(win.AccumulateEach(window.Sum, many, target, places))
			s.OK(win.GetAccumulate(window.Sum, many, result, target, 5))
			s.OK(win.FetchAndOp(window.Xor, 1, &old, target, 5))
			s.OK(win.CompareAndSwap(1, 2, &old, target, 5))
			s.OK(single.Accumulate(window.Sum, []float64{1}, target, 5))
			s.OK(single.FetchAndOp(window.Sum, 1, &oldFloat, target, 5))
			s.OK(single.CompareAndSwap(1, 2, &oldFloat, target, 5))
			s.OK(win.PutLayout(many, strided, target, 0, contiguous))
			request, err := win.RPut(one, target, 0)
			s.OK(err)
			s.OK(request.Wait(ctx))
			s.OK(win.PutNotify(one, target, 0, 0))
			s.OK(win.Flush(ctx, target))
			// Only the first put after a Fence asks whether the target has ended that Fence.
			s.OK(win.Put(one, target, 0))
			s.OK(win.Flush(ctx, target))
			s.OK(win.Put(one, target, 0))
			request, err = win.RFlush(target)
			s.OK(err)
			s.OK(request.Wait(ctx))
			s.OK(win.FlushLocal(ctx, target))
		}
		s.OK(win.FlushAll(ctx))
		s.OK(win.FlushLocalAll(ctx))
		s.OK(single.UnlockAll(ctx))
		s.OK(win.UnlockAll(ctx))
		s.OK(win.WaitNotify(ctx, 0, uint64(s.World.Size())))
		s.OK(win.Fence(ctx))
		s.OK(win.Fence(ctx, window.NoSucceed))
		s.OK(win.Post(ctx, before))
		s.OK(win.Start(ctx, group))
		s.OK(win.Put(one, next, 3))
		s.OK(win.Complete(ctx))
		s.OK(win.Wait(ctx))
		s.OK(win.Lock(ctx, window.Exclusive, next))
		s.OK(win.Unlock(ctx, next))
		s.OK(win.Sync())
	}
	const turns = 200
	// What queues keep for each of their slots is made when it is first used.
	for range 50 {
		turn()
	}
	s.OK(s.World.Barrier(s.Ctx))
	// The runtime allocates now and then, and a wait that has been quiet for long asks why. A machine that stands still
	// makes many of them long, but not in each of several tries.
	allocated := uint64(math.MaxUint64)
	for range 3 {
		start := heapObjects()
		for range turns {
			turn()
		}
		allocated = min(allocated, heapObjects()-start)
		s.OK(s.World.Barrier(s.Ctx))
	}
	s.Check(allocated < turns, "%d objects were allocated in %d turns", allocated, turns)
	s.OK(single.Close())
	s.OK(win.Close())
})

func heapObjects() uint64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.Mallocs
}

// TestNothingAllocated is of processes: goroutines share a heap. Under the race detector
// package tcp makes system calls that allocate.
func TestNothingAllocated(t *testing.T) {
	for _, n := range []int{1, 2} {
		jobtest.Processes(t, n, nothingAllocated)
		if !testsize.Race && (n > 1 || testsize.Size() > 1) {
			jobtest.TCP(t, n, nothingAllocated)
		}
	}
}
