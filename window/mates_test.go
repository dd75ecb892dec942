package window_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// hastyFences are Fences that are cut short again and again. Each rank adds to an element of
// all. To another element of a rank the next one puts, which on two hosts is elsewhere, and in
// the next epoch the one after that, which is its mate; now and then all put to all what is
// long.
var hastyFences = register("fences cut short", func(s *script) {
	const rounds, long = 14, 1 << 13
	ended, end := context.WithCancel(s.Ctx)
	end()
	size, me := s.World.Size(), s.World.Rank()
	win := allocate[int64](s, 1+size+long*size)
	fence := func(asserts ...window.Assert) {
		for turn := 0; ; turn++ {
			ctx, stop := ended, context.CancelFunc(func() {})
			if turn%2 != 0 {
				ctx, stop = context.WithTimeout(s.Ctx, 100*time.Microsecond) // expires
			}
			err := win.Fence(ctx, asserts...)
			stop()
			if err == nil {
				return
			}
			s.Check(errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded), "error is %v", err)
			s.OK(s.Ctx.Err())
		}
	}
	fence(window.NoPrecede)
	bulk := make([]int64, long)
	for n := range int64(rounds) {
		bulk[long-1] = n
		for late := range 2 {
			target := (me + size - 1 - late) % size
			s.OK(win.Put([]int64{2*n + int64(late)}, target, 0))
			for rank := range size {
				s.OK(win.Accumulate(window.Sum, []int64{1}, rank, 1+me))
				if n%4 == 1 {
					s.OK(win.Put(bulk, rank, 1+size+long*me))
				}
			}
			fence()
		}
		s.Check(win.Local()[0] == 2*n+1, "in round %d the element that was put to last is %d", n, win.Local()[0])
		for rank := range size {
			added, last := win.Local()[1+rank], win.Local()[size+long*(rank+1)]
			s.Check(added == 2*n+2, "in round %d rank %d has added %d times", n, rank, added)
			s.Check(n%4 != 1 || last == n, "in round %d rank %d has put %d", n, rank, last)
		}
		fence(window.NoPrecede)
	}
	fence(window.NoPrecede, window.NoSucceed)
	s.OK(win.Close())
})

func TestFencesCutShort(t *testing.T) {
	busy.Acquire(t)
	if testsize.Size() > 1 {
		t.Run("hosts", func(t *testing.T) { jobtest.Hosts(t, 5, hastyFences) })
	}
	t.Run("tcp", func(t *testing.T) { jobtest.TCP(t, 3, hastyFences) })
	t.Run("three hosts", func(t *testing.T) {
		job := jobtest.StartWith(t, 6, hastyFences, func(rank int) []string {
			return []string{"RMA_DEVICE=", fmt.Sprintf("RMA_HOST=host%d", max(rank-1, 0)/2)}
		})
		for rank, err := range job.Wait() {
			require.NoError(t, err, "rank %d", rank)
		}
	})
}

const mixedRanks = 4

// fencing has all ranks write to all and fence until one of them fails, which has been killed:
// where it was in that is left to chance.
var fencing = register("a death among fences of hosts", func(s *script) {
	win := allocate[int64](s, mixedRanks)
	s.OK(win.Fence(s.Ctx))
	jobtest.Signal("ready")
	var err error
	for n := int64(0); err == nil; n++ {
		for target := range mixedRanks {
			err = errors.Join(err, win.Put([]int64{n}, target, s.World.Rank()))
		}
		err = errors.Join(err, win.Fence(s.Ctx))
	}
	expectDeath(s, win, err)
})

// missed has all ranks but one, which is killed, wait in a Fence.
var missed = register("a death before a fence of hosts", func(s *script) {
	win := allocate[int64](s, mixedRanks)
	s.OK(win.Fence(s.Ctx))
	for target := range mixedRanks {
		s.OK(win.Put([]int64{1}, target, s.World.Rank()))
	}
	jobtest.Signal("ready")
	if fmt.Sprint(s.World.Rank()) == os.Getenv(victimVariable) {
		<-s.Ctx.Done()
	}
	expectDeath(s, win, win.Fence(s.Ctx))
})

const victimVariable = "RMA_WINDOWTEST_VICTIM"

// expectDeath checks the error of a Fence, and that there is none further.
func expectDeath(s *script, win *window.Window[int64], err error) {
	var lost *world.PeerError
	s.Check(errors.As(err, &lost), "error is %v, want a *world.PeerError", err)
	s.Check(fmt.Sprint(lost.Rank) == os.Getenv(victimVariable), "error names rank %d: %v", lost.Rank, err)
	err = win.Fence(s.Ctx)
	s.Check(errors.As(err, &lost), "error of the next Fence is %v, want a *world.PeerError", err)
	s.OK(win.Close())
}

// Whoever dies, the one that speaks for its host or its mate: all others hear of it.
func TestKilledAmongMates(t *testing.T) {
	busy.Acquire(t)
	for turn, body := range []string{fencing, missed} {
		for _, dies := range testsize.Turns(2*turn, mixedRanks, 2) {
			t.Run(fmt.Sprintf("%s/rank %d", body, dies), func(t *testing.T) {
				job := jobtest.StartWith(t, mixedRanks, body, func(rank int) []string {
					return append(machines[2].environment(rank), fmt.Sprintf("%s=%d", victimVariable, dies))
				})
				for rank := range mixedRanks {
					job.Await(rank, "ready")
				}
				job.Kill(dies)
				for rank, err := range job.Wait() {
					require.Equal(t, rank == dies, err != nil, "rank %d: %v", rank, err)
				}
			})
		}
	}
}
