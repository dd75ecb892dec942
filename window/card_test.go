package window_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/internal/simtest"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/sim"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

var (
	cardCounts   = registerShared("card counts", []int{1, 2, 3, 5}, countByCards)
	cardRefusals = registerShared("card refusals", []int{1, 2, 3, 5}, refuseByCards)
	// Processes have cards beside memory that they share.
	cardsOfHosts         = jobtest.RegisterWith("card counts on cards", jobtest.OptionsCardsOfProcesses(false), scripted(countByCards))
	coherentCardsOfHosts = jobtest.RegisterWith("card counts on coherent cards", jobtest.OptionsCardsOfProcesses(true), scripted(countByCards))
)

// countByCards has all ranks count on all ranks, themselves included, in all modes: every number is
// counted once.
func countByCards(s *script) {
	const rounds = 20
	ctx, n, me := s.Ctx, s.World.Size(), s.World.Rank()
	win := allocate[int64](s, 8, window.CardAtomics())
	everyone := func(do func(target int)) {
		for step := range n {
			do((me + step) % n)
		}
	}

	s.OK(win.LockAll(ctx))
	s.OK(win.FlushAll(ctx))
	sevens := make([]int64, n)
	everyone(func(target int) {
		last := int64(-1)
		for range rounds {
			var old, three int64
			s.OK(win.FetchAndOp(window.Sum, 1, &old, target, 0))
			s.OK(win.Accumulate(window.Sum, []int64{1, -1, 5, 5, 5, 5, 5}, target, 1))
			s.OK(win.CompareAndSwap(int64(3*n*rounds), 7, &three, target, 0))
			s.OK(win.FlushLocal(ctx, target))
			s.Check(old > last && three > old, "rank %d counted %d on rank %d, and then %d, behind %d", me, old, target, three, last)
			last = old
		}
		got := make([]int64, 7)
		r, err := win.RGetAccumulate(window.NoOp, nil, got, target, 1)
		s.OK(err)
		s.OK(r.Wait(ctx))
		s.Check(got[0] >= rounds && got[1] <= -rounds && got[6] >= 5*rounds, "rank %d sees %v of rank %d", me, got, target)
		r, err = win.RAccumulate(window.Sum, []int64{int64(2 * rounds)}, target, 0)
		s.OK(err)
		s.OK(r.Wait(ctx))
	})
	s.OK(win.UnlockAll(ctx))
	s.OK(s.World.Barrier(ctx))
	s.OK(win.Fence(ctx))
	total := int64(n * rounds)
	equal(s, "the sum", win.Local(), []int64{3 * total, total, -total, 5 * total, 5 * total, 5 * total, 5 * total, 5 * total})
	s.OK(s.World.Barrier(ctx))
	everyone(func(target int) { s.OK(win.CompareAndSwap(3*total, 7, &sevens[target], target, 0)) })
	s.OK(win.Fence(ctx, window.NoSucceed))
	s.Check(win.Local()[0] == 7, "swapped to %d", win.Local()[0])
	for _, seven := range sevens {
		s.Check(seven == 7 || seven == 3*total, "swapped %d", seven)
	}
	s.OK(s.World.Barrier(ctx))

	ranks := make([]int, n)
	for rank := range ranks {
		ranks[rank] = rank
	}
	group, err := win.Group(ranks...)
	s.OK(err)
	for range 3 {
		s.OK(win.Post(ctx, group))
		s.OK(win.Start(ctx, group))
		everyone(func(target int) { s.OK(win.Accumulate(window.Sum, []int64{1}, target, 0)) })
		s.OK(win.Complete(ctx))
		s.OK(win.Wait(ctx))
	}
	s.Check(win.Local()[0] == int64(7+3*n), "posted to %d", win.Local()[0])
	s.OK(s.World.Barrier(ctx))

	// Puts have arrived before counts that were issued after a flush.
	everyone(func(target int) {
		s.OK(win.Lock(ctx, window.Exclusive, target))
		var count int64
		s.OK(win.FetchAndOp(window.Sum, 1, &count, target, 0))
		s.OK(win.Flush(ctx, target))
		s.OK(win.Put([]int64{count}, target, 1))
		s.OK(win.Flush(ctx, target))
		s.OK(win.FetchAndOp(window.Sum, 1, &count, target, 1))
		s.OK(win.Unlock(ctx, target))
		s.Check(count >= int64(7+3*n), "rank %d locked and counted %d", me, count)
	})
	s.OK(s.World.Barrier(ctx))
	s.Check(win.Local()[0] == int64(7+4*n) && win.Local()[1] == win.Local()[0], "locked and counted to %v", win.Local()[:2])

	// A rank notifies itself through memory.
	s.OK(win.Lock(ctx, window.Shared, me))
	s.OK(win.Accumulate(window.Sum, []int64{1}, me, 3))
	s.OK(win.PutNotify([]int64{1}, me, 2, 0))
	s.OK(win.WaitNotify(ctx, 0, 1))
	s.Check(win.Local()[2] == 1, "notified of %d", win.Local()[2])
	s.OK(win.Unlock(ctx, me))
	s.Check(win.Local()[3] == 5*total+1, "unlocked with %d", win.Local()[3])
	s.OK(win.Close())
}

// refuseByCards has what cards cannot do refused, whether it is cards that do it.
func refuseByCards(s *script) {
	win := allocate[uint64](s, 4, window.CardAtomics())
	halves, err := window.View[uint32](win)
	s.OK(err)
	reals, err := window.View[float64](win)
	s.OK(err)
	s.OK(win.Fence(s.Ctx))
	for target := range s.World.Size() {
		var was uint64
		var half uint32
		s.Fails(win.Accumulate(window.Max, []uint64{1}, target, 0), window.ErrPromise)
		s.Fails(win.FetchAndOp(window.Replace, 1, &was, target, 0), window.ErrPromise)
		err := halves.Accumulate(window.Sum, []uint32{1}, target, 0)
		s.Fails(err, window.ErrPromise)
		const want = "the window was made with CardAtomics, which are of int64 and uint64, this is of uint32"
		s.Check(says(err, want), "%v does not say that %s", err, want)
		s.Fails(halves.CompareAndSwap(0, 1, &half, target, 0), window.ErrPromise)
		s.Fails(reals.GetAccumulate(window.NoOp, nil, make([]float64, 1), target, 0), window.ErrPromise)
		s.Fails(win.FetchAndOp(window.Sum, 1, &was, target, 4), window.ErrRange)
		s.Fails(win.CompareAndSwap(0, 1, &was, target, -1), window.ErrArgument)
	}
	s.OK(reals.Put([]float64{1}, s.World.Rank(), 0))
	s.OK(win.Fence(s.Ctx, window.NoSucceed))
	s.Check(win.Local()[0] != 0 && win.Local()[1] == 0, "contents %v", win.Local())

	options := []window.Option{window.CardAtomics()}
	if s.World.Rank() == 0 {
		options = nil
	}
	_, err = window.Allocate[uint64](s.Ctx, s.World, 4, options...)
	var mismatch *window.MismatchError
	s.Check(s.World.Size() == 1 && err == nil || errors.As(err, &mismatch), "options that differ: %v", err)
	s.OK(win.Close())
}

// says reports whether an operation was rejected for a broken promise, with such a text.
func says(err error, text string) bool {
	var refused *window.OpError
	return errors.As(err, &refused) && refused.Cause.Error() == fmt.Sprintf("%v: %s", window.ErrPromise, text)
}

// TestCardAtomics runs the bodies on cards that are coherent with processors and on others, in
// virtual time and as goroutines, and where there are no cards.
func TestCardAtomics(t *testing.T) {
	busy.Acquire(t)
	for turn, name := range []string{cardCounts, cardRefusals} {
		body := scripted([]func(s *script){countByCards, refuseByCards}[turn])
		sizes := []int{1, 2, 3, 5}
		runShared(t, name)
		for _, i := range testsize.Turns(2*turn+1, len(sizes), 1) {
			n := sizes[i]
			t.Run(fmt.Sprintf("%s/%d", name, n), func(t *testing.T) {
				for _, coherent := range []bool{false, true} {
					t.Run(fmt.Sprintf("cards, coherent %v", coherent), func(t *testing.T) {
						ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
						defer cancel()
						require.NoError(t, world.Run(ctx, n, body, jobtest.OptionsCards(coherent)...))
					})
					t.Run(fmt.Sprintf("simulated, coherent %v", coherent), func(t *testing.T) {
						require.NoError(t, world.Simulate(t.Context(), simulatorOf(t, coherent), n, body))
					})
				}
			})
		}
	}
}

// TestCardAtomicsOfHosts runs on processes of two hosts, some of which share memory too: what cards
// are not coherent with goes by them all the same.
func TestCardAtomicsOfHosts(t *testing.T) {
	busy.Acquire(t)
	sizes := []int{3, 4}
	for turn, name := range []string{cardsOfHosts, coherentCardsOfHosts} {
		for _, i := range testsize.Turns(turn, len(sizes), 1) {
			jobtest.Hosts(t, sizes[i], name)
		}
	}
}

// simulatorOf is one of ndr-2024 whose cards are coherent or not.
func simulatorOf(t *testing.T, coherent bool) *sim.Simulator {
	p := simtest.Profile(t, "ndr-2024")
	p.CoherentAtomics = coherent
	return simtest.With(t, p, 1)
}

// TestCardsCount counts what cards do of the operations of a rank on itself and on another: with
// coherent ones the processor does the former.
func TestCardsCount(t *testing.T) {
	for coherent, want := range map[bool]int{false: 2 * 2 * 3, true: 2 * 3} {
		s := simulatorOf(t, coherent)
		atomics := 0
		s.Trace(func(e sim.Event) {
			if e.Kind == sim.Posted && (e.Opcode == verbs.OpFetchAdd || e.Opcode == verbs.OpCompareSwap) {
				atomics++
			}
		})
		require.NoError(t, world.Simulate(t.Context(), s, 2, scripted(func(s *script) {
			win := allocate[int64](s, 2, window.CardAtomics())
			s.OK(win.LockAll(s.Ctx))
			for target := range 2 {
				var was int64
				s.OK(win.Accumulate(window.Sum, []int64{1, 2}, target, 0))
				s.OK(win.CompareAndSwap(5, 6, &was, target, 1))
			}
			s.OK(win.UnlockAll(s.Ctx))
			s.OK(win.Close())
		})))
		require.Equal(t, want, atomics, "coherent %v", coherent)
	}
}

// TestCardOfDead: a rank that counts on a rank which is killed gets the failure, and continues alone.
func TestCardOfDead(t *testing.T) {
	s := simulatorOf(t, false)
	faults, err := sim.ParseFaults("at 3ms kill rank 1")
	require.NoError(t, err)
	require.NoError(t, s.Inject(faults...))
	survived := 0
	err = world.Simulate(t.Context(), s, 3, scripted(func(s *script) {
		win := allocate[int64](s, 2, window.CardAtomics())
		s.OK(win.LockAll(s.Ctx))
		var err error
		for count := 0; err == nil; count++ {
			var was, own int64
			err = errors.Join(win.FetchAndOp(window.Sum, 1, &was, 1, 0), win.FetchAndOp(window.Sum, 1, &own, s.World.Rank(), 1))
			if err == nil {
				err = win.FlushAll(s.Ctx)
			}
			if err == nil && s.World.Rank() != 1 {
				s.Check(own == int64(count), "counted %d on itself, not %d", own, count)
			}
		}
		s.Lost(err, 1)
		var own int64
		s.OK(win.FetchAndOp(window.Sum, 1, &own, s.World.Rank(), 1))
		s.OK(win.Flush(s.Ctx, s.World.Rank()))
		s.Check(own > 0, "counted %d on itself", own)
		_ = win.UnlockAll(s.Ctx)
		s.OK(win.Close())
		survived++
	}))
	require.ErrorIs(t, err, sim.ErrFault)
	require.Equal(t, 2, survived)
}
