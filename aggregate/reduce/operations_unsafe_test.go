package reduce_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/onesided/rma/aggregate/reduce"
)

// count is how many elements the properties are checked with: some vectors and a
// rest.
const count = 317

// A model has the definitions of what elements of a kind can do.
type model[T reduce.Element] map[reduce.Op]func(d, s T) T

func ofAll[T reduce.Element]() model[T] {
	return model[T]{
		reduce.Sum:     func(d, s T) T { return d + s },
		reduce.Product: func(d, s T) T { return d * s },
		reduce.Replace: func(_, s T) T { return s },
		reduce.NoOp:    func(d, _ T) T { return d },
	}
}

func ofIntegers[T int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64]() model[T] {
	m := ofAll[T]()
	m[reduce.Min] = func(d, s T) T {
		if s < d {
			return s
		}
		return d
	}
	m[reduce.Max] = func(d, s T) T {
		if s > d {
			return s
		}
		return d
	}
	m[reduce.And] = func(d, s T) T { return d & s }
	m[reduce.Or] = func(d, s T) T { return d | s }
	m[reduce.Xor] = func(d, s T) T { return d ^ s }
	return m
}

// ofFloats takes the rule of the package's documentation literally.
func ofFloats[T float32 | float64]() model[T] {
	m := ofAll[T]()
	choose := func(d, s T, second bool, signs func(d, s bool) bool) T {
		switch {
		case isNaN(d) || isNaN(s):
			return T(math.NaN())
		case d == 0 && s == 0:
			if signs(math.Signbit(float64(d)), math.Signbit(float64(s))) {
				return T(math.Copysign(0, -1))
			}
			return 0
		case second:
			return s
		}
		return d
	}
	m[reduce.Min] = func(d, s T) T { return choose(d, s, s < d, func(d, s bool) bool { return d || s }) }
	m[reduce.Max] = func(d, s T) T { return choose(d, s, s > d, func(d, s bool) bool { return d && s }) }
	return m
}

// TestOperations compares every operation, in each form, with its definition.
func TestOperations(t *testing.T) {
	testModel(t, ofIntegers[int8]())
	testModel(t, ofIntegers[int16]())
	testModel(t, ofIntegers[int32]())
	testModel(t, ofIntegers[int64]())
	testModel(t, ofIntegers[uint8]())
	testModel(t, ofIntegers[uint16]())
	testModel(t, ofIntegers[uint32]())
	testModel(t, ofIntegers[uint64]())
	testModel(t, ofFloats[float32]())
	testModel(t, ofFloats[float64]())
	testModel(t, ofAll[complex64]())
	testModel(t, ofAll[complex128]())
}

func testModel[T reduce.Element](t *testing.T, m model[T]) {
	kind := reduce.KindOf[T]()
	random := rand.New(rand.NewPCG(5, uint64(kind)))
	for _, level := range reduce.Levels() {
		for op, define := range m {
			t.Run(fmt.Sprintf("%v/%v/%v", level, kind, op), func(t *testing.T) {
				d, s := elements[T](random), elements[T](random)
				want := make([]T, count)
				for i := range want {
					want[i] = define(d[i], s[i])
				}
				applied, fetched, old := slices.Clone(d), slices.Clone(d), make([]T, count)
				combine(lookup(t, level, kind, op), applied, s)
				compare(t, "Lookup's", applied, want)

				fetch, err := reduce.LookupFetch(kind, op)
				if err != nil {
					t.Fatal(err)
				}
				fetch(pointer(fetched), pointer(s), pointer(old), count)
				compare(t, "LookupFetch's", fetched, want)
				compare(t, "LookupFetch's old", old, d)

				// One by one, as a single element goes another way.
				single, update := slices.Clone(d), slices.Clone(d)
				for i := range single {
					fetch(pointer(single[i:]), pointer(s[i:]), pointer(old[i:]), 1)
				}
				compare(t, "single elements'", single, want)
				compare(t, "single elements' old", old, d)
				if atomic, err := reduce.LookupAtomic(kind, op); err != nil {
					t.Error(err)
				} else if atomic != nil {
					clear(old)
					for i := range update {
						atomic(pointer(update[i:]), pointer(s[i:]), pointer(old[i:]))
					}
					compare(t, "LookupAtomic's", update, want)
					compare(t, "LookupAtomic's old", old, d)
				}
			})
		}
	}
}

// TestLaws checks what the definitions make one expect of any elements: with which
// order of ranks, and in which grouping, they may be combined.
func TestLaws(t *testing.T) {
	for _, level := range reduce.Levels() {
		testLaws[int8](t, level)
		testLaws[int16](t, level)
		testLaws[int32](t, level)
		testLaws[int64](t, level)
		testLaws[uint8](t, level)
		testLaws[uint16](t, level)
		testLaws[uint32](t, level)
		testLaws[uint64](t, level)
		testLaws[float32](t, level)
		testLaws[float64](t, level)
		testLaws[complex64](t, level)
		testLaws[complex128](t, level)
	}
}

func testLaws[T reduce.Element](t *testing.T, level reduce.Level) {
	kind := reduce.KindOf[T]()
	random := rand.New(rand.NewPCG(6, uint64(kind)))
	for op := reduce.Sum; op <= reduce.Xor; op++ {
		if reduce.Supported(kind, op) != nil {
			continue
		}
		t.Run(fmt.Sprintf("%v/%v/%v", level, kind, op), func(t *testing.T) {
			f := lookup(t, level, kind, op)
			of := func(d, s []T) []T {
				d = slices.Clone(d)
				combine(f, d, s)
				return d
			}
			for range 10 {
				a, b, c := elements[T](random), elements[T](random), elements[T](random)
				if kind < reduce.Complex64 || op == reduce.Sum {
					compare(t, "b op a, which is a op b:", of(b, a), of(a, b))
				}
				if kind < reduce.Float32 || op == reduce.Min || op == reduce.Max {
					compare(t, "a op (b op c), which is (a op b) op c:", of(a, of(b, c)), of(of(a, b), c))
				}
				switch op {
				case reduce.Min, reduce.Max, reduce.And, reduce.Or:
					compare(t, "a op a, which is a:", of(a, a), a)
				case reduce.Xor:
					compare(t, "a op b op b, which is a:", of(of(a, b), b), a)
				}
			}
		})
	}
}

func TestApplyingAllocatesNothing(t *testing.T) {
	for _, level := range reduce.Levels() {
		for kind, op := range all() {
			f := lookup(t, level, kind, op)
			dst, src := aligned(count*kind.Size()), aligned(count*kind.Size())
			for _, n := range []int{1, count} {
				if got := testing.AllocsPerRun(10, func() { apply(f, dst, src, kind, n) }); got != 0 {
					t.Errorf("%v of %d %v at %v allocates %v times", op, n, kind, level, got)
				}
			}
		}
	}
}

// elements are count of T from a pool. Sound because the pool has as many bytes, at
// a cache line.
func elements[T reduce.Element](random *rand.Rand) []T {
	kind := reduce.KindOf[T]()
	b := pool(kind, count*kind.Size(), random)
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), count)
}

func pointer[T any](s []T) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(s)) }

func combine[T reduce.Element](f reduce.Func, d, s []T) { f(pointer(d), pointer(s), len(d)) }

// compare compares elements by their bits but for NaN. Sound because the bytes are
// those of the slices.
func compare[T reduce.Element](t *testing.T, what string, got, want []T) {
	t.Helper()
	kind := reduce.KindOf[T]()
	for i := range got {
		g := unsafe.Slice((*byte)(unsafe.Pointer(&got[i])), kind.Size())
		w := unsafe.Slice((*byte)(unsafe.Pointer(&want[i])), kind.Size())
		if !same(kind, g, w) {
			t.Fatalf("%s element %d is %v (% x), not %v (% x)", what, i, got[i], g, want[i], w)
		}
	}
}
