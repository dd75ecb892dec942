package window_test

import (
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
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

// A rank leaves while the others call. writers of them write to it before. Their operations may return that it has
// left, and they then call the Fence no further than that.
var (
	leftRanks = testsize.PlainOrLarge(7, 12)
	writers   = map[int]bool{0: true, 2: true, 3: true, leftRanks * 3 / 4: true}
)

const leaver = 1

// leftCalls are those of a window that wait for a rank which has left.
var leftCalls = map[string]func(s *script, win *window.Window[int64]){
	"Fence": func(s *script, win *window.Window[int64]) {
		if s.World.Rank() != leaver {
			s.left(win.Fence(s.Ctx))
		}
	},
	"Close": func(s *script, win *window.Window[int64]) {
		if s.World.Rank() != leaver {
			s.OK(win.Close())
		}
	},
	"Put": func(s *script, win *window.Window[int64]) {
		s.OK(win.Fence(s.Ctx))
		if s.World.Rank() == leaver {
			return
		}
		for writers[s.World.Rank()] && !job.Of(s.World).Gone(leaver) {
			job.Of(s.World).Poll()
		}
		if writers[s.World.Rank()] {
			err := win.Put([]int64{1}, leaver, s.World.Rank())
			if err != nil {
				s.left(err)
			}
		}
		s.left(win.Fence(s.Ctx))
	},
}

// left checks that an error says that the rank has left.
func (s *script) left(err error) {
	var lost *world.PeerError
	s.Check(errors.As(err, &lost) && errors.Is(err, world.ErrLeft) && lost.Rank == leaver, "error is %v, want that rank %d has left", err, leaver)
}

// leaving has one rank leave while the others call. They stay until stay returns.
func leaving(call func(s *script, win *window.Window[int64]), stay func() error) func(s *script) {
	return func(s *script) {
		win := allocate[int64](s, leftRanks)
		call(s, win)
		if s.World.Rank() != leaver {
			s.OK(stay())
		}
	}
}

func init() {
	for name, call := range leftCalls {
		register("left: "+name, leaving(call, func() error { return jobtest.Hold("told") }))
	}
}

// The memory of a rank that has left is there for passive targets until all have left, and its locks are broken. This
// holds for ranks that have mapped it and for others.
func passiveLeaver(s *script) {
	win := allocate[int64](s, 4)
	rank := s.World.Rank()
	switch rank {
	case 0:
		s.OK(win.Lock(s.Ctx, window.Shared, leaver))
		s.OK(win.Put([]int64{5}, leaver, 0))
		s.OK(win.Unlock(s.Ctx, leaver))
	case leaver:
		s.OK(take(s.Ctx, win, window.Shared, 0))
	}
	s.OK(s.World.Barrier(s.Ctx))
	switch rank {
	case 0:
		for !job.Of(s.World).Gone(leaver) {
			job.Of(s.World).Poll()
			s.World.Compute(time.Microsecond)
		}
	case leaver:
		s.OK(take(s.Ctx, win, window.Exclusive, leaver))
		return
	case 2:
		s.World.Compute(5 * time.Millisecond)
	}
	var mine, old [1]int64
	for range 3 {
		s.OK(win.Lock(s.Ctx, window.Exclusive, leaver))
		s.OK(win.Put([]int64{int64(rank)}, leaver, 2))
		s.OK(win.Flush(s.Ctx, leaver))
		s.OK(win.Get(mine[:], leaver, 2))
		s.OK(win.FetchAndOp(window.Sum, 1, &old[0], leaver, 3))
		put, err := win.RPut([]int64{7}, leaver, 1)
		s.OK(err)
		flush, err := win.RFlush(leaver)
		s.OK(err)
		for _, r := range []window.Request{put, flush} {
			for done := false; !done; {
				done, err = r.Test()
				s.OK(err)
			}
		}
		s.OK(win.Unlock(s.Ctx, leaver))
		s.Check(mine[0] == int64(rank), "the element is %d", mine[0])
	}
	s.OK(take(s.Ctx, win, window.Exclusive, 0))
	s.OK(win.Unlock(s.Ctx, 0))
	for old[0] != 6 {
		s.OK(win.Lock(s.Ctx, window.Shared, leaver))
		s.OK(win.Get(old[:], leaver, 3))
		s.OK(win.Unlock(s.Ctx, leaver))
		s.World.Compute(time.Microsecond)
	}
}

var passiveLeaverName = register("a passive target that has left", passiveLeaver)

func TestPassiveLeaver(t *testing.T) {
	busy.Acquire(t)
	jobtest.Run(t, 3, passiveLeaverName)
	t.Run("simulated", func(t *testing.T) {
		require.NoError(t, world.Simulate(t.Context(), simtest.New(t, "ndr-2024", 1), 3, scripted(passiveLeaver)))
	})
}

// held is how a lock is held by one that leaves with it, and then asked for.
var held = map[string][2]window.LockKind{"exclusive": {window.Exclusive, window.Shared}, "shared": {window.Shared, window.Exclusive}}

func init() {
	for name, kinds := range held {
		register("leaving with a lock, "+name, func(s *script) {
			win := allocate[int64](s, 1)
			const holder, target, waiter = 2, 4, 5
			if s.World.Rank() == holder {
				s.OK(take(s.Ctx, win, kinds[0], target))
			}
			s.OK(s.World.Barrier(s.Ctx))
			if s.World.Rank() == waiter {
				s.OK(take(s.Ctx, win, kinds[1], target))
				s.OK(win.Unlock(s.Ctx, target))
			}
		})
	}
	for name, lost := range lostAsks {
		register("a death in Close, "+name, func(s *script) { dieInClose(s, lost) })
	}
}

// A lock that a rank has left with is also broken by a rank that maps the memory, has no link with the holder, and
// waits itself.
func TestLeaverWithLock(t *testing.T) {
	busy.Acquire(t)
	names := slices.Sorted(maps.Keys(held))
	for _, i := range testsize.Turns(0, len(names), 1) {
		name := names[i]
		t.Run(name, func(t *testing.T) {
			job := jobtest.StartWith(t, 8, "leaving with a lock, "+name, func(rank int) []string {
				return []string{"RMA_DEVICE=", fmt.Sprint("RMA_HOST=", rank/4)}
			})
			require.NoError(t, errors.Join(job.Wait()...))
		})
	}
}

// lostAsks are calls that wait for the lock of the leaver.
var lostAsks = map[string]func(s *script, win *window.Window[int64]) error{
	"Flush": func(s *script, win *window.Window[int64]) error { return win.Flush(s.Ctx, leaver) },
	"Test": func(s *script, win *window.Window[int64]) error {
		r, err := win.RFlush(leaver)
		for done := false; !done && err == nil; {
			done, err = r.Test()
		}
		return err
	},
}

// dieInClose has rank 2 have the lock of one that leaves, and is killed then, while rank 0 waits for that.
func dieInClose(s *script, lost func(s *script, win *window.Window[int64]) error) {
	win := allocate[int64](s, 1)
	if s.World.Rank() != leaver {
		s.OK(take(s.Ctx, win, window.Shared, leaver))
		s.OK(win.Unlock(s.Ctx, leaver))
	}
	s.OK(s.World.Barrier(s.Ctx))
	if s.World.Rank() == 2 {
		s.OK(take(s.Ctx, win, window.Exclusive, leaver))
	}
	s.OK(s.World.Barrier(s.Ctx))
	for s.World.Rank() != leaver && !job.Of(s.World).Gone(leaver) {
		job.Of(s.World).Poll()
		runtime.Gosched()
	}
	switch s.World.Rank() {
	case 0:
		s.OK(win.Lock(s.Ctx, window.Shared, leaver))
		s.OK(win.Put([]int64{1}, leaver, 0))
		jobtest.Signal("ready")
		s.left(lost(s, win))
		jobtest.Signal("lost")
	case 2:
		s.OK(jobtest.Hold("held"))
	}
}

// A rank that has left and is killed before the others have left, too, ends the calls that wait for it.
func TestDeathInClose(t *testing.T) {
	busy.Acquire(t)
	for name := range lostAsks {
		t.Run(name, func(t *testing.T) {
			job := jobtest.StartWith(t, 3, "a death in Close, "+name, func(int) []string { return []string{"RMA_DEVICE=tcp"} })
			job.Await(0, "ready")
			job.Await(2, "held")
			job.Kill(leaver)
			job.Await(0, "lost")
			job.Release(2)
			errs := job.Wait()
			require.ErrorContains(t, errs[leaver], "killed")
			require.NoError(t, errors.Join(errs[0], errs[2]))
		})
	}
}

// All that wait for a rank which has left hear of it, while each of them stays in the job: over shared memory and messages, and
// by rounds, which processes go through only where there is a core for each, by tallies and at the root.
func TestLeaver(t *testing.T) {
	for turn, name := range slices.Sorted(maps.Keys(leftCalls)) {
		for _, i := range testsize.Turns(turn, 2, 1) {
			cores := []int{1, leftRanks}[i]
			t.Run(fmt.Sprintf("%s/goroutines, %d cores", name, cores), func(t *testing.T) {
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
				var told sync.WaitGroup
				told.Add(leftRanks - 1)
				require.NoError(t, world.Run(t.Context(), leftRanks, scripted(leaving(leftCalls[name], func() error {
					told.Done()
					told.Wait()
					return nil
				}))))
			})
		}
	}
}

// TestProcessLeaves is TestLeaver for ranks that are processes.
func TestProcessLeaves(t *testing.T) {
	busy.Acquire(t)
	hosts := func(n int) func(rank int) []string {
		return func(rank int) []string { return []string{"RMA_DEVICE=", fmt.Sprint("RMA_HOST=", rank*n/leftRanks)} }
	}
	places := []struct {
		name        string
		environment func(rank int) []string
	}{
		{"one host", func(int) []string { return []string{"RMA_DEVICE=shm"} }},
		{"TCP", func(int) []string { return []string{"RMA_DEVICE=tcp"} }},
		{"three hosts", hosts(3)},
		{fmt.Sprintf("%d hosts", leftRanks-1), hosts(leftRanks - 1)},
	}
	for turn, name := range slices.Sorted(maps.Keys(leftCalls)) {
		for _, i := range testsize.Turns(turn, len(places), 1) {
			place := places[i]
			t.Run(name+"/"+place.name, func(t *testing.T) {
				job := jobtest.StartWith(t, leftRanks, "left: "+name, place.environment)
				for rank := range leftRanks {
					if rank != leaver {
						job.Await(rank, "told")
					}
				}
				for rank := range leftRanks {
					if rank != leaver {
						job.Release(rank)
					}
				}
				require.NoError(t, errors.Join(job.Wait()...))
			})
		}
	}
}
