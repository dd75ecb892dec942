package job_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/world"
)

// A sample is a type of elements: the value of an element i of rank, different for
// each, and a reduction.
type sample[T comparable] struct {
	value   func(rank, i int) T
	combine func(a, b T) T
	// byOp are the calls by the Op that combine is, if it is one.
	byOp *opCalls[T]
	// all and sum are what parts and total have returned last.
	all, sum latest[T]
}

// latest is the last value that was made for n ranks and k elements. The ranks of a process share it, and compare with
// it only.
type latest[T any] struct {
	mu   sync.Mutex
	n, k int
	made []T
}

func (l *latest[T]) of(n, k int, make func() []T) []T {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.made == nil || l.n != n || l.k != k {
		l.n, l.k, l.made = n, k, make()
	}
	return l.made
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
	bytes8 = &sample[uint8]{value: func(rank, i int) uint8 { return uint8(31*rank + i) }, combine: func(a, b uint8) uint8 { return a ^ b }, byOp: by[uint8](world.Xor)}
	shorts = &sample[int16]{value: func(rank, i int) int16 { return int16(1000*rank - i) }, combine: func(a, b int16) int16 { return a + b }, byOp: by[int16](world.Sum)}
	floats = &sample[float32]{value: func(rank, i int) float32 { return float32(rank*100 - i%100) }, combine: func(a, b float32) float32 { return max(a, b) }, byOp: by[float32](world.Max)}
	longs  = &sample[int64]{value: func(rank, i int) int64 { return int64(rank)<<40 + int64(i) }, combine: func(a, b int64) int64 { return a + b }, byOp: by[int64](world.Sum)}
	planes = &sample[complex128]{value: func(rank, i int) complex128 { return complex(float64(rank), float64(i)) }, combine: func(a, b complex128) complex128 { return a + b }, byOp: by[complex128](world.Sum)}
	colors = &sample[[3]uint8]{
		value:   func(rank, i int) [3]uint8 { return [3]uint8{uint8(rank), uint8(i), uint8(i >> 8)} },
		combine: func(a, b [3]uint8) [3]uint8 { return [3]uint8{a[0] + b[0], a[1] | b[1], max(a[2], b[2])} },
	}
	readings = &sample[reading]{
		value: func(rank, i int) reading { return reading{int32(rank), float64(i), [5]uint8{uint8(i), uint8(rank)}} },
		combine: func(a, b reading) reading {
			return reading{a.Sensor + b.Sensor, a.Value + b.Value, [5]uint8{a.Flags[0] ^ b.Flags[0], a.Flags[1] ^ b.Flags[1]}}
		},
	}
	nothings = &sample[struct{}]{value: func(int, int) struct{} { return struct{}{} }, combine: func(a, _ struct{}) struct{} { return a }}
)

// part is the k elements of rank from the first on.
func (e *sample[T]) part(rank, first, k int) []T {
	p := make([]T, k)
	for i := range p {
		p[i] = e.value(rank, first+i)
	}
	return p
}

// parts is the k elements of every rank.
func (e *sample[T]) parts(n, k int) []T {
	return e.all.of(n, k, func() []T {
		p := make([]T, 0, n*k)
		for rank := range n {
			for i := range k {
				p = append(p, e.value(rank, i))
			}
		}
		return p
	})
}

// total combines the k elements of all ranks.
func (e *sample[T]) total(n, k int) []T {
	return e.sum.of(n, k, func() []T {
		t := e.part(0, 0, k)
		for rank := 1; rank < n; rank++ {
			for i := range t {
				t[i] = e.combine(t[i], e.value(rank, i))
			}
		}
		return t
	})
}

// same checks without formatting, which is most of the time of a test otherwise.
func same[T comparable](s *script, call string, got, want []T) {
	s.Check(len(got) == len(want), "%s: %d elements, want %d", call, len(got), len(want))
	for i := range got {
		if got[i] != want[i] {
			s.Check(false, "%s on rank %d of %d: element %d of %d is %v, want %v", call, s.me, s.n, i, len(got), got[i], want[i])
		}
	}
}

// calls are the collectives, each with a check of what it gives.
func (e *sample[T]) calls(s *script, root, k int) []func() {
	atRoot := func(p []T) []T {
		if s.me != root {
			return nil
		}
		return p
	}
	calls := []func(){
		func() { s.call(s.World.Barrier) },
		func() {
			buffer := e.part(s.me, 0, k)
			s.call(func(ctx context.Context) error { return world.Broadcast(ctx, s.World, root, buffer) })
			same(s, "Broadcast", buffer, e.part(root, 0, k))
		},
		func() {
			in, out := e.part(s.me, 0, k), atRoot(make([]T, s.n*k))
			s.call(func(ctx context.Context) error { return world.Gather(ctx, s.World, root, in, out) })
			same(s, "Gather", out, atRoot(e.parts(s.n, k)))
		},
		func() {
			in, out := e.part(s.me, 0, k), make([]T, s.n*k)
			s.call(func(ctx context.Context) error { return world.AllGather(ctx, s.World, in, out) })
			same(s, "AllGather", out, e.parts(s.n, k))
		},
		func() {
			in, out := e.part(s.me, 0, k), atRoot(make([]T, k))
			s.call(func(ctx context.Context) error { return world.Reduce(ctx, s.World, root, in, out, e.combine) })
			same(s, "Reduce", out, atRoot(e.total(s.n, k)))
		},
		func() {
			in, out := e.part(s.me, 0, k), make([]T, k)
			s.call(func(ctx context.Context) error { return world.AllReduce(ctx, s.World, in, out, e.combine) })
			same(s, "AllReduce", out, e.total(s.n, k))
		},
		func() {
			in, out := atRoot(slices.Clone(e.parts(s.n, k))), make([]T, k)
			s.call(func(ctx context.Context) error { return world.Scatter(ctx, s.World, root, in, out) })
			same(s, "Scatter", out, e.part(s.me, 0, k))
		},
		func() {
			in, out := e.part(s.me, 0, s.n*k), make([]T, s.n*k)
			s.call(func(ctx context.Context) error { return world.AllToAll(ctx, s.World, in, out) })
			want := make([]T, 0, s.n*k)
			for rank := range s.n {
				for i := range k {
					want = append(want, e.value(rank, s.me*k+i))
				}
			}
			same(s, "AllToAll", out, want)
		},
	}
	if e.byOp != nil {
		calls = append(calls,
			func() {
				in, out := e.part(s.me, 0, k), atRoot(make([]T, k))
				s.call(func(ctx context.Context) error { return e.byOp.reduce(ctx, s.World, root, in, out) })
				same(s, "ReduceOp", out, atRoot(e.total(s.n, k)))
			},
			func() {
				in, out := e.part(s.me, 0, k), make([]T, k)
				s.call(func(ctx context.Context) error { return e.byOp.allReduce(ctx, s.World, in, out) })
				same(s, "AllReduceOp", out, e.total(s.n, k))
			},
			func() {
				both := e.part(s.me, 0, k)
				s.call(func(ctx context.Context) error { return e.byOp.allReduce(ctx, s.World, both, both) })
				same(s, "AllReduceOp in place", both, e.total(s.n, k))
			})
	}
	return calls
}

// rootless are the places of calls without a root among those of sample.calls.
var rootless = []int{0, 3, 5, 7, 9, 10}

// everyRoot makes every call with every root, and large ones with two. Calls that have no root it makes once, or with
// each root in a larger size.
func everyRoot[T comparable](s *script, e *sample[T], large int, lengths ...int) {
	every := func(root, k int) {
		for i, call := range e.calls(s, root, k) {
			if root == 0 || testsize.N(1) > 1 || !slices.Contains(rootless, i) {
				call()
			}
		}
	}
	for root := range s.n {
		for _, k := range lengths {
			every(root, k)
		}
		if root == 0 || root == s.n-1 {
			every(root, large)
		}
	}
}

var everyCall = register("every call", func(s *script) {
	everyRoot(s, bytes8, testsize.PlainOrLarge(70_000, 110_000), 0, 1, 3, 4095)
	everyRoot(s, shorts, 0, 1, 7)
	everyRoot(s, floats, 0, 1, 7)
	everyRoot(s, longs, testsize.PlainOrLarge(6_000, 15_000), 0, 1, 100)
	everyRoot(s, planes, 0, 1, 300)
	everyRoot(s, colors, 1366, 0, 1)
	everyRoot(s, readings, testsize.PlainOrLarge(2000, 5000), 0, 1)
	everyRoot(s, nothings, 10, 0, 1)
})

// Every collective gives every rank what it promises, for elements of any size, in
// messages of no letter, one, and many.
func TestEveryCall(t *testing.T) {
	busy.Acquire(t)
	for i, n := range []int{1, 2, 3, 5, 8} {
		if n == 8 && testsize.Race {
			continue
		}
		t.Run(fmt.Sprintf("%d ranks", n), func(t *testing.T) { inForms(t, someForms(i+2, n, 1), n, everyCall) })
	}
}

// program makes steps calls in an order that all ranks draw alike, at times that
// each draws for itself.
func program(s *script, steps, longest int, seed uint64) {
	seed += testsize.Seed()
	common := rand.New(rand.NewPCG(seed, uint64(s.n)))
	own := rand.New(rand.NewPCG(seed, uint64(s.n+s.me+1)))
	for at := range steps {
		k, root, call := common.IntN(6), common.IntN(s.n), common.IntN(11)
		if common.IntN(20) == 0 {
			k = common.IntN(longest + 1)
		}
		for range own.IntN(3) * own.IntN(10) {
			runtime.Gosched()
		}
		calls := longs.calls(s, root, k)
		if common.IntN(2) != 0 {
			calls, call = colors.calls(s, root, k), call%8
		}
		if err := jobtest.Checked(calls[call]); err != nil {
			s.OK(fmt.Errorf("step %d of %d: %w (to replay: %s)", at, steps, err, strings.Join(testsize.Environment(), " ")))
		}
	}
}

// stepsOf is how many steps a program has that has n in a plain run without the race detector.
func stepsOf(n int) int { return max(testsize.N(n)/partOfThem, 1) }

var (
	longProgram  = register("program", func(s *script) { program(s, stepsOf(250), 5000, 1) })
	shortProgram = register("short program", func(s *script) { program(s, stepsOf(100), 500, 2) })
	hastyProgram = register("hasty program", func(s *script) {
		s.hasty = true
		program(s, stepsOf(150), 5000, 3)
	})
	shortHastyProgram = register("short hasty program", func(s *script) {
		s.hasty = true
		program(s, stepsOf(50), 5000, 4)
	})
)

// Hundreds of calls in random order, where fast ranks are rounds ahead of slow ones.
func TestProgram(t *testing.T) {
	busy.Acquire(t)
	for i, n := range []int{1, 2, 3, 5, 8} {
		t.Run(fmt.Sprintf("%d ranks", n), func(t *testing.T) { inForms(t, someForms(2*i+2, n, 2), n, longProgram) })
	}
	// AllToAll forwards among so many.
	t.Run("19 ranks", func(t *testing.T) { inForms(t, threadForms(19), 19, shortProgram) })
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
	busy.Acquire(t)
	for i, n := range []int{2, 3, 8} {
		t.Run(fmt.Sprintf("%d ranks", n), func(t *testing.T) { inForms(t, someForms(2*i+1, n, 2), n, hastyProgram) })
	}
	t.Run("17 ranks", func(t *testing.T) { inForms(t, threadForms(17), 17, shortHastyProgram) })
}
