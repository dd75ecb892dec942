package world_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/world"
)

// A sample is a type of elements: the value of an element i of rank, different for
// each, and a reduction.
type sample[T comparable] struct {
	value   func(rank, i int) T
	combine func(a, b T) T
	// byOp are the calls by the Op that combine is, if it is one.
	byOp *opCalls[T]
}

type opCalls[T comparable] struct {
	reduce    func(ctx context.Context, w *world.World, root int, in, out []T) error
	allReduce func(ctx context.Context, w *world.World, in, out []T) error
}

func by[T world.Element](op world.Op) *opCalls[T] {
	return &opCalls[T]{
		func(ctx context.Context, w *world.World, root int, in, out []T) error {
			return world.ReduceOp(ctx, w, root, in, out, op)
		},
		func(ctx context.Context, w *world.World, in, out []T) error {
			return world.AllReduceOp(ctx, w, in, out, op)
		},
	}
}

type reading struct {
	Sensor int32
	Value  float64
	Flags  [5]uint8
}

var (
	bytes8 = sample[uint8]{func(rank, i int) uint8 { return uint8(31*rank + i) }, func(a, b uint8) uint8 { return a ^ b }, by[uint8](world.Xor)}
	shorts = sample[int16]{func(rank, i int) int16 { return int16(1000*rank - i) }, func(a, b int16) int16 { return a + b }, by[int16](world.Sum)}
	floats = sample[float32]{func(rank, i int) float32 { return float32(rank*100 - i%100) }, func(a, b float32) float32 { return max(a, b) }, by[float32](world.Max)}
	longs  = sample[int64]{func(rank, i int) int64 { return int64(rank)<<40 + int64(i) }, func(a, b int64) int64 { return a + b }, by[int64](world.Sum)}
	planes = sample[complex128]{func(rank, i int) complex128 { return complex(float64(rank), float64(i)) }, func(a, b complex128) complex128 { return a + b }, by[complex128](world.Sum)}
	colors = sample[[3]uint8]{
		func(rank, i int) [3]uint8 { return [3]uint8{uint8(rank), uint8(i), uint8(i >> 8)} },
		func(a, b [3]uint8) [3]uint8 { return [3]uint8{a[0] + b[0], a[1] | b[1], max(a[2], b[2])} }, nil,
	}
	readings = sample[reading]{
		func(rank, i int) reading { return reading{int32(rank), float64(i), [5]uint8{uint8(i), uint8(rank)}} },
		func(a, b reading) reading {
			return reading{a.Sensor + b.Sensor, a.Value + b.Value, [5]uint8{a.Flags[0] ^ b.Flags[0], a.Flags[1] ^ b.Flags[1]}}
		}, nil,
	}
	nothings = sample[struct{}]{func(int, int) struct{} { return struct{}{} }, func(a, _ struct{}) struct{} { return a }, nil}
)

// part is the k elements of rank from the first on.
func (e sample[T]) part(rank, first, k int) []T {
	p := make([]T, k)
	for i := range p {
		p[i] = e.value(rank, first+i)
	}
	return p
}

// parts is the k elements of every rank.
func (e sample[T]) parts(n, k int) []T {
	var p []T
	for rank := range n {
		p = append(p, e.part(rank, 0, k)...)
	}
	return p
}

// total combines the k elements of all ranks.
func (e sample[T]) total(n, k int) []T {
	t := e.part(0, 0, k)
	for rank := 1; rank < n; rank++ {
		for i := range t {
			t[i] = e.combine(t[i], e.value(rank, i))
		}
	}
	return t
}

// same checks without formatting, which is most of the time of a test otherwise.
func same[T comparable](s *script, call string, got, want []T) {
	s.check(len(got) == len(want), "%s: %d elements, want %d", call, len(got), len(want))
	for i := range got {
		if got[i] != want[i] {
			s.check(false, "%s on rank %d of %d: element %d of %d is %v, want %v", call, s.me, s.n, i, len(got), got[i], want[i])
		}
	}
}

// calls are the collectives, each with a check of what it gives.
func (e sample[T]) calls(s *script, root, k int) []func() {
	atRoot := func(p []T) []T {
		if s.me != root {
			return nil
		}
		return p
	}
	calls := []func(){
		func() { s.call(s.w.Barrier) },
		func() {
			buffer := e.part(s.me, 0, k)
			s.call(func(ctx context.Context) error { return world.Broadcast(ctx, s.w, root, buffer) })
			same(s, "Broadcast", buffer, e.part(root, 0, k))
		},
		func() {
			in, out := e.part(s.me, 0, k), atRoot(make([]T, s.n*k))
			s.call(func(ctx context.Context) error { return world.Gather(ctx, s.w, root, in, out) })
			same(s, "Gather", out, atRoot(e.parts(s.n, k)))
		},
		func() {
			in, out := e.part(s.me, 0, k), make([]T, s.n*k)
			s.call(func(ctx context.Context) error { return world.AllGather(ctx, s.w, in, out) })
			same(s, "AllGather", out, e.parts(s.n, k))
		},
		func() {
			in, out := e.part(s.me, 0, k), atRoot(make([]T, k))
			s.call(func(ctx context.Context) error { return world.Reduce(ctx, s.w, root, in, out, e.combine) })
			same(s, "Reduce", out, atRoot(e.total(s.n, k)))
		},
		func() {
			in, out := e.part(s.me, 0, k), make([]T, k)
			s.call(func(ctx context.Context) error { return world.AllReduce(ctx, s.w, in, out, e.combine) })
			same(s, "AllReduce", out, e.total(s.n, k))
		},
		func() {
			in, out := atRoot(e.parts(s.n, k)), make([]T, k)
			s.call(func(ctx context.Context) error { return world.Scatter(ctx, s.w, root, in, out) })
			same(s, "Scatter", out, e.part(s.me, 0, k))
		},
		func() {
			in, out := e.part(s.me, 0, s.n*k), make([]T, s.n*k)
			s.call(func(ctx context.Context) error { return world.AllToAll(ctx, s.w, in, out) })
			var want []T
			for rank := range s.n {
				want = append(want, e.part(rank, s.me*k, k)...)
			}
			same(s, "AllToAll", out, want)
		},
	}
	if e.byOp != nil {
		calls = append(calls,
			func() {
				in, out := e.part(s.me, 0, k), atRoot(make([]T, k))
				s.call(func(ctx context.Context) error { return e.byOp.reduce(ctx, s.w, root, in, out) })
				same(s, "ReduceOp", out, atRoot(e.total(s.n, k)))
			},
			func() {
				in, out := e.part(s.me, 0, k), make([]T, k)
				s.call(func(ctx context.Context) error { return e.byOp.allReduce(ctx, s.w, in, out) })
				same(s, "AllReduceOp", out, e.total(s.n, k))
			},
			func() {
				both := e.part(s.me, 0, k)
				s.call(func(ctx context.Context) error { return e.byOp.allReduce(ctx, s.w, both, both) })
				same(s, "AllReduceOp in place", both, e.total(s.n, k))
			})
	}
	return calls
}

// everyRoot makes every call with every root, and large ones with two.
func everyRoot[T comparable](s *script, e sample[T], large int, lengths ...int) {
	for root := range s.n {
		for _, k := range lengths {
			for _, call := range e.calls(s, root, k) {
				call()
			}
		}
		if root == 0 || root == s.n-1 {
			for _, call := range e.calls(s, root, large) {
				call()
			}
		}
	}
}

var everyCall = register("every call", func(s *script) {
	everyRoot(s, bytes8, 110_000, 0, 1, 3, 4095)
	everyRoot(s, shorts, 0, 1, 7)
	everyRoot(s, floats, 0, 1, 7)
	everyRoot(s, longs, 15_000, 0, 1, 100)
	everyRoot(s, planes, 0, 1, 300)
	everyRoot(s, colors, 1366, 0, 1)
	everyRoot(s, readings, 5000, 0, 1)
	everyRoot(s, nothings, 10, 0, 1)
})

// Every collective gives every rank what it promises, for elements of any size, in
// messages of no letter, one, and many.
func TestEveryCall(t *testing.T) {
	for _, n := range []int{1, 2, 3, 5, 8} {
		if n == 8 && raced {
			continue
		}
		t.Run(fmt.Sprintf("%d ranks", n), func(t *testing.T) { jobtest.Run(t, n, everyCall) })
	}
}

// program makes steps calls in an order that all ranks draw alike, at times that
// each draws for itself.
func program(s *script, steps, longest int, seed uint64) {
	common := rand.New(rand.NewPCG(seed, uint64(s.n)))
	own := rand.New(rand.NewPCG(seed, uint64(s.n+s.me+1)))
	for range steps / partOfThem {
		k, root, call := common.IntN(6), common.IntN(s.n), common.IntN(11)
		if common.IntN(20) == 0 {
			k = common.IntN(longest + 1)
		}
		for range own.IntN(3) * own.IntN(10) {
			runtime.Gosched()
		}
		if common.IntN(2) == 0 {
			longs.calls(s, root, k)[call]()
		} else {
			colors.calls(s, root, k)[call%8]()
		}
	}
}

var (
	longProgram  = register("program", func(s *script) { program(s, 3000, 5000, 1) })
	shortProgram = register("short program", func(s *script) { program(s, 300, 500, 2) })
	hastyProgram = register("hasty program", func(s *script) {
		s.hasty = true
		program(s, 500, 5000, 3)
	})
)

// Thousands of calls in random order, where fast ranks are rounds ahead of slow ones.
func TestProgram(t *testing.T) {
	for _, n := range []int{1, 2, 3, 5, 8} {
		t.Run(fmt.Sprintf("%d ranks", n), func(t *testing.T) { jobtest.Run(t, n, longProgram) })
	}
	// So many that AllToAll forwards.
	t.Run("19 ranks", func(t *testing.T) { jobtest.Run(t, 19, shortProgram) })
}

func TestProgramInDissemination(t *testing.T) {
	spread(t)
	// More would spin against each other for minutes on few cores.
	for _, n := range []int{3, 5} {
		t.Run(fmt.Sprintf("%d ranks", n), func(t *testing.T) { jobtest.Goroutines(t, n, shortProgram) })
	}
}

// A call that its context cuts short goes on when it is made again: the same
// programs, by ranks that have no patience.
func TestHastyProgram(t *testing.T) {
	for _, n := range []int{2, 3, 8, 17} {
		t.Run(fmt.Sprintf("%d ranks", n), func(t *testing.T) { jobtest.Run(t, n, hastyProgram) })
	}
}
