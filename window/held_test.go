package window_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/onesided/rma/window"
)

// farCount is an int64 window of which single elements are accumulated to in
// batches.
const farCount = 1 << 18

// heldOrder looks that what is held back comes before what is not, in program order.
var heldOrder = registerShared("order of what is held", []int{1, 2, 3}, func(s *script) {
	win := allocate[int64](s, farCount)
	bits, err := window.View[uint64](win)
	s.OK(err)
	next := (s.World.Rank() + 1) % s.World.Size()
	s.OK(win.LockAll(s.Ctx))
	at := 1000 + 10*s.World.Rank()
	for i := range int64(100) {
		s.OK(win.Accumulate(window.Replace, []int64{i}, next, at))
		s.OK(win.Accumulate(window.Sum, []int64{1000}, next, at))
		s.OK(win.Accumulate(window.Replace, []int64{-i}, next, at+1))
	}
	var old int64
	s.OK(win.FetchAndOp(window.Sum, 1, &old, next, at))
	s.OK(win.Flush(s.Ctx, next))
	s.Check(old == 1099, "FetchAndOp read %d, want 1099", old)
	for range 3 {
		s.OK(bits.Accumulate(window.Xor, []uint64{1}, next, at))
	}
	s.OK(win.CompareAndSwap(1101, 7, &old, next, at))
	s.OK(win.Flush(s.Ctx, next))
	s.Check(old == 1101, "CompareAndSwap read %d, want 1101", old)
	s.OK(win.Accumulate(window.Max, []int64{20}, next, at+1))
	s.OK(win.Accumulate(window.Max, []int64{10}, next, at+1))
	s.OK(win.Accumulate(window.Sum, []int64{1, 1}, next, at))
	result := make([]int64, 2)
	s.OK(win.GetAccumulate(window.NoOp, nil, result, next, at))
	s.OK(win.Flush(s.Ctx, next))
	equal(s, "atomic get", result, []int64{8, 21})
	// An origin buffer is read when the call is made.
	operand := []int64{5}
	for i := range 20 {
		operand[0] = int64(i)
		s.OK(win.Accumulate(window.Sum, operand, next, at+2))
	}
	s.OK(win.Flush(s.Ctx, next))
	s.OK(win.Get(result[:1], next, at+2))
	s.OK(win.Flush(s.Ctx, next))
	equal(s, "sum", result[:1], []int64{190})
	s.OK(win.UnlockAll(s.Ctx))
	s.OK(win.Close())
})

// heldSums has all ranks, several goroutines each, add to the same elements of one
// large window, with every way of completing it.
var heldSums = registerShared("sums of what is held", []int{1, 2, 3}, func(s *script) {
	const goroutines, turns = 3, 400
	for _, options := range [][]window.Option{nil, {window.SingleElement()}} {
		win := allocate[int64](s, farCount, options...)
		// look is called while no goroutine accumulates, after that many rounds beside those of the goroutines.
		look := func(rounds int) {
			if s.World.Rank() == 0 {
				want := int64(s.World.Size() * turns / 50 * (goroutines + rounds))
				for i := range 50 {
					s.Check(win.Local()[i*5000] == want, "element %d is %d after %d rounds, want %d", i*5000, win.Local()[i*5000], rounds, want)
				}
			}
			s.OK(s.World.Barrier(s.Ctx))
		}
		s.OK(win.LockAll(s.Ctx))
		var together sync.WaitGroup
		faults := make([]error, goroutines)
		for g := range goroutines {
			together.Go(func() {
				for i := range turns {
					err := win.Accumulate(window.Sum, []int64{1}, 0, i%50*5000)
					if i%7 == g {
						err = errors.Join(err, win.Flush(s.Ctx, 0))
					}
					faults[g] = errors.Join(faults[g], err)
				}
			})
		}
		together.Wait()
		s.OK(errors.Join(faults...))
		s.OK(win.UnlockAll(s.Ctx))
		s.OK(s.World.Barrier(s.Ctx))
		look(0)
		s.OK(win.Fence(s.Ctx))
		for i := range turns {
			s.OK(win.Accumulate(window.Sum, []int64{1}, 0, i%50*5000))
		}
		s.OK(win.Fence(s.Ctx, window.NoSucceed))
		look(1)
		all := make([]int, 0, s.World.Size())
		for rank := range s.World.Size() {
			all = append(all, rank)
		}
		if s.World.Rank() == 0 {
			s.OK(win.Post(s.Ctx, groupOf(s, win, all...)))
		}
		s.OK(win.Start(s.Ctx, groupOf(s, win, 0)))
		for i := range turns {
			s.OK(win.Accumulate(window.Sum, []int64{1}, 0, i%50*5000))
		}
		s.OK(win.Complete(s.Ctx))
		if s.World.Rank() == 0 {
			s.OK(win.Wait(s.Ctx))
		}
		look(2)
		s.OK(win.Lock(s.Ctx, window.Exclusive, 0))
		for i := range turns {
			s.OK(win.Accumulate(window.Sum, []int64{1}, 0, i%50*5000))
		}
		s.OK(win.Unlock(s.Ctx, 0))
		s.OK(s.World.Barrier(s.Ctx))
		look(3)
		s.OK(win.Close())
	}
})

func TestHeldBack(t *testing.T) {
	busy.Acquire(t)
	runShared(t, heldOrder, heldSums)
}
