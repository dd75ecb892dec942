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
var heldOrder = register("order of what is held", func(s *script) {
	win := allocate[int64](s, farCount)
	bits, err := window.View[uint64](win)
	s.ok(err)
	next := (s.w.Rank() + 1) % s.w.Size()
	s.ok(win.LockAll(s.ctx))
	at := 1000 + 10*s.w.Rank()
	for i := range int64(100) {
		s.ok(win.Accumulate(window.Replace, []int64{i}, next, at))
		s.ok(win.Accumulate(window.Sum, []int64{1000}, next, at))
		s.ok(win.Accumulate(window.Replace, []int64{-i}, next, at+1))
	}
	var old int64
	s.ok(win.FetchAndOp(window.Sum, 1, &old, next, at))
	s.ok(win.Flush(s.ctx, next))
	s.check(old == 1099, "FetchAndOp read %d, want 1099", old)
	for range 3 {
		s.ok(bits.Accumulate(window.Xor, []uint64{1}, next, at))
	}
	s.ok(win.CompareAndSwap(1101, 7, &old, next, at))
	s.ok(win.Flush(s.ctx, next))
	s.check(old == 1101, "CompareAndSwap read %d, want 1101", old)
	s.ok(win.Accumulate(window.Max, []int64{20}, next, at+1))
	s.ok(win.Accumulate(window.Max, []int64{10}, next, at+1))
	s.ok(win.Accumulate(window.Sum, []int64{1, 1}, next, at))
	result := make([]int64, 2)
	s.ok(win.GetAccumulate(window.NoOp, nil, result, next, at))
	s.ok(win.Flush(s.ctx, next))
	equal(s, "atomic get", result, []int64{8, 21})
	// An origin buffer is read when the call is made.
	operand := []int64{5}
	for i := range 20 {
		operand[0] = int64(i)
		s.ok(win.Accumulate(window.Sum, operand, next, at+2))
	}
	s.ok(win.Flush(s.ctx, next))
	s.ok(win.Get(result[:1], next, at+2))
	s.ok(win.Flush(s.ctx, next))
	equal(s, "sum", result[:1], []int64{190})
	s.ok(win.UnlockAll(s.ctx))
	s.ok(win.Close())
})

// heldSums has all ranks, several goroutines each, add to the same elements of one
// large window, with every way of completing it.
var heldSums = register("sums of what is held", func(s *script) {
	const goroutines, turns = 3, 400
	for _, options := range [][]window.Option{nil, {window.SingleElement()}} {
		win := allocate[int64](s, farCount, options...)
		// look is called when nobody accumulates, after that many rounds beside the
		// goroutines'.
		look := func(rounds int) {
			if s.w.Rank() == 0 {
				want := int64(s.w.Size() * turns / 50 * (goroutines + rounds))
				for i := range 50 {
					s.check(win.Local()[i*5000] == want, "element %d is %d after %d rounds, want %d", i*5000, win.Local()[i*5000], rounds, want)
				}
			}
			s.ok(s.w.Barrier(s.ctx))
		}
		s.ok(win.LockAll(s.ctx))
		var together sync.WaitGroup
		faults := make([]error, goroutines)
		for g := range goroutines {
			together.Go(func() {
				for i := range turns {
					err := win.Accumulate(window.Sum, []int64{1}, 0, i%50*5000)
					if i%7 == g {
						err = errors.Join(err, win.Flush(s.ctx, 0))
					}
					faults[g] = errors.Join(faults[g], err)
				}
			})
		}
		together.Wait()
		s.ok(errors.Join(faults...))
		s.ok(win.UnlockAll(s.ctx))
		s.ok(s.w.Barrier(s.ctx))
		look(0)
		s.ok(win.Fence(s.ctx))
		for i := range turns {
			s.ok(win.Accumulate(window.Sum, []int64{1}, 0, i%50*5000))
		}
		s.ok(win.Fence(s.ctx, window.NoSucceed))
		look(1)
		all := make([]int, 0, s.w.Size())
		for rank := range s.w.Size() {
			all = append(all, rank)
		}
		if s.w.Rank() == 0 {
			s.ok(win.Post(s.ctx, groupOf(s, win, all...)))
		}
		s.ok(win.Start(s.ctx, groupOf(s, win, 0)))
		for i := range turns {
			s.ok(win.Accumulate(window.Sum, []int64{1}, 0, i%50*5000))
		}
		s.ok(win.Complete(s.ctx))
		if s.w.Rank() == 0 {
			s.ok(win.Wait(s.ctx))
		}
		look(2)
		s.ok(win.Lock(s.ctx, window.Exclusive, 0))
		for i := range turns {
			s.ok(win.Accumulate(window.Sum, []int64{1}, 0, i%50*5000))
		}
		s.ok(win.Unlock(s.ctx, 0))
		s.ok(s.w.Barrier(s.ctx))
		look(3)
		s.ok(win.Close())
	}
})

func TestHeldBack(t *testing.T) {
	for turn, name := range []string{heldOrder, heldSums} {
		runInForms(t, turn, name, 1, 2, 3)
	}
}
