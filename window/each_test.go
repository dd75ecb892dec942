package window_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/onesided/rma/aggregate/reduce"
	"github.com/onesided/rma/epoch"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/window"
)

// eachSums has all ranks accumulate to places all over the windows of all, in calls of many lengths, with other
// operations in between, and compares what the windows have with what each rank has worked out for itself.
var eachSums = registerShared("accumulates in one call", []int{1, 3}, func(s *script) {
	for _, options := range [][]window.Option{nil, {window.SingleElement(), window.SameOp()}, {window.CardAtomics()}} {
		eachSumsOf[int64](s, 1000, options...)
		eachSumsOf[int64](s, farCount/2, options...)
	}
	eachSumsOf[uint8](s, 1000)
	eachSumsOf[int16](s, 1000)
	eachSumsOf[float32](s, farCount)
	eachSumsOf[complex128](s, 1000)
})

func eachSumsOf[T window.Element](s *script, count int, options ...window.Option) {
	win := allocate[T](s, count, options...)
	n, me := s.World.Size(), s.World.Rank()
	want := make([]T, count)
	s.OK(win.LockAll(s.Ctx))
	for rank := range n {
		r := rand.New(rand.NewPCG(uint64(rank), 1))
		for _, length := range []int{1, 2, 0, 15, 16, 17, 18, 64, 65, 66, 1000, 4096} {
			target := r.IntN(n)
			origin, places := make([]T, length), make([]int, length)
			for i := range length {
				// Few places, so that some come again soon.
				origin[i], places[i] = elementOf[T](r.IntN(4)), r.IntN(50)*(count/50)
				if target == me {
					want[places[i]] += origin[i]
				}
			}
			if rank != me {
				continue
			}
			// A single element comes before and after.
			s.OK(win.Accumulate(window.Sum, []T{elementOf[T](3)}, target, 7))
			s.OK(win.AccumulateEach(window.Sum, origin, target, places))
			s.OK(win.Accumulate(window.Sum, []T{elementOf[T](-3)}, target, 7))
			clear(origin)
			clear(places)
		}
	}
	s.OK(win.UnlockAll(s.Ctx))
	s.OK(s.World.Barrier(s.Ctx))
	equalElements(s, fmt.Sprintf("a window of %T", want), win.Local(), want)
	s.OK(s.World.Barrier(s.Ctx))
	s.OK(win.Close())
}

// elementOf is a number as an element.
func elementOf[T window.Element](n int) (element T) {
	switch e := any(&element).(type) {
	case *uint8:
		*e = uint8(n)
	case *int16:
		*e = int16(n)
	case *int64:
		*e = int64(n)
	case *float32:
		*e = float32(n)
	case *complex128:
		*e = complex(float64(n), -float64(n))
	}
	return element
}

// eachOrder checks that elements of one call, and of successive calls, are combined in their order.
var eachOrder = registerShared("order of accumulates in one call", []int{1, 3}, func(s *script) {
	for _, count := range []int{100, farCount / 2} {
		win := allocate[int64](s, count)
		next := (s.World.Rank() + 1) % s.World.Size()
		s.OK(win.LockAll(s.Ctx))
		origin, places := make([]int64, 300), make([]int, 300)
		for turn := range 20 {
			for i := range origin {
				origin[i], places[i] = int64(turn*1000+i), i%7
			}
			s.OK(win.AccumulateEach(window.Replace, origin, next, places))
			s.OK(win.Accumulate(window.Sum, []int64{1}, next, 3))
		}
		result := make([]int64, 7)
		s.OK(win.GetAccumulate(window.NoOp, nil, result, next, 0))
		s.OK(win.Flush(s.Ctx, next))
		equal(s, "what came last", result, []int64{19294, 19295, 19296, 19298, 19298, 19299, 19293})
		s.OK(win.UnlockAll(s.Ctx))
		s.OK(s.World.Barrier(s.Ctx))
		s.OK(win.Close())
	}
})

// eachRefused looks at what is refused, of which nothing is done.
var eachRefused = registerShared("accumulates in one call that are refused", []int{1, 3}, func(s *script) {
	win := allocate[float64](s, 10, window.SameOp())
	last := s.World.Size() - 1
	s.Fails(win.AccumulateEach(window.Sum, []float64{1}, last, []int{0}), epoch.ErrNoEpoch)
	s.Fails(win.AccumulateEach(window.Sum, nil, last, nil), epoch.ErrNoEpoch)
	s.OK(win.LockAll(s.Ctx))
	s.Fails(win.AccumulateEach(window.Sum, []float64{1, 2}, last, []int{0}), window.ErrArgument)
	s.Fails(win.AccumulateEach(window.Sum, []float64{1, 2}, last, []int{0, 10}), window.ErrRange)
	s.Fails(win.AccumulateEach(window.Sum, []float64{1, 2}, last, []int{0, -1}), window.ErrArgument)
	s.Fails(win.AccumulateEach(window.Sum, []float64{1}, last+1, []int{0}), window.ErrRank)
	s.Fails(win.AccumulateEach(window.Xor, []float64{1, 2}, last, []int{0, 1}), reduce.ErrUnsupported)
	s.OK(win.AccumulateEach(window.Max, []float64{-1, -2}, last, []int{0, 1}))
	s.Fails(win.AccumulateEach(window.Sum, []float64{1, 2}, last, []int{0, 1}), window.ErrPromise)
	s.OK(win.UnlockAll(s.Ctx))
	s.OK(s.World.Barrier(s.Ctx))
	equal(s, "the window", win.Local(), make([]float64, 10))
	s.OK(win.Close())
})

// eachCollected has the collector look at origins that fill the memory that they have, while they are queued.
var eachCollected = registerShared("accumulates in one call while memory is collected", []int{1, 3}, func(s *script) {
	win := allocate[int64](s, 100)
	next := (s.World.Rank() + 1) % s.World.Size()
	s.OK(win.LockAll(s.Ctx))
	places := make([]int, 1024)
	for range testsize.N(20) {
		origin := make([]int64, len(places))
		s.OK(win.AccumulateEach(window.Sum, origin, next, places))
		runtime.GC()
	}
	s.OK(win.UnlockAll(s.Ctx))
	s.OK(win.Close())
})

// eachClosed has a goroutine close the epoch while another accumulates for long. A few elements may arrive after that.
var eachClosed = registerShared("accumulates in one call whose epoch is closed", []int{1, 3}, func(s *script) {
	// By atomic instructions, which others may watch.
	win := allocate[int64](s, 10, window.SingleElement())
	s.OK(win.LockAll(s.Ctx))
	places, ones := make([]int, 1<<18), make([]int64, 1<<18)
	for i := range ones {
		ones[i] = 1
	}
	ended := make(chan error, 1)
	go func() { ended <- win.AccumulateEach(window.Sum, ones, s.World.Rank(), places) }()
	sum := func() int64 { return atomic.LoadInt64(&win.Local()[0]) }
	for sum() == 0 {
		runtime.Gosched()
	}
	s.OK(win.UnlockAll(s.Ctx))
	before := sum()
	err := <-ended
	s.Check(sum()-before <= 64, "%d elements were accumulated when the epoch was closed", sum()-before)
	if sum() < int64(len(ones)) {
		s.Fails(err, epoch.ErrNoEpoch)
	}
	s.OK(win.Close())
})

func TestAccumulateEach(t *testing.T) {
	busy.Acquire(t)
	runShared(t, eachSums, eachOrder, eachRefused, eachCollected, eachClosed)
}
