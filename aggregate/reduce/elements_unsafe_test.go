package reduce_test

import (
	"bytes"
	"encoding/binary"
	"iter"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/onesided/rma/aggregate/reduce"
)

// all are the kinds with the operations that they have.
func all() iter.Seq2[reduce.Kind, reduce.Op] {
	return func(yield func(reduce.Kind, reduce.Op) bool) {
		for kind := reduce.Int8; kind <= reduce.Complex128; kind++ {
			for op := reduce.Sum; op <= reduce.NoOp; op++ {
				if reduce.Supported(kind, op) == nil && !yield(kind, op) {
					return
				}
			}
		}
	}
}

// combining are all but Replace and NoOp, which combine nothing.
func combining() iter.Seq2[reduce.Kind, reduce.Op] {
	return func(yield func(reduce.Kind, reduce.Op) bool) {
		for kind, op := range all() {
			if op < reduce.Replace && !yield(kind, op) {
				return
			}
		}
	}
}

// use sets the level of a test's lookups.
func use(t testing.TB, level reduce.Level) {
	t.Helper()
	previous, err := reduce.Use(level)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = reduce.Use(previous) })
}

func lookup(t testing.TB, level reduce.Level, kind reduce.Kind, op reduce.Op) reduce.Func {
	t.Helper()
	use(t, level)
	apply, err := reduce.Lookup(kind, op)
	if err != nil {
		t.Fatal(err)
	}
	return apply
}

// vectors are the levels beside Plain.
func vectors(t testing.TB) []reduce.Level {
	t.Helper()
	levels := reduce.Levels()[1:]
	if len(levels) == 0 {
		t.Skip("skipped: this processor has only the plain level")
	}
	return levels
}

// line is the length of a cache line and of the longest vector.
const line = 64

// aligned is n bytes that begin at a cache line. Sound because the address is only
// looked at.
func aligned(n int) []byte {
	b := make([]byte, n+line)
	ahead := -uintptr(unsafe.Pointer(&b[0])) & (line - 1)
	return b[ahead : int(ahead)+n]
}

// apply calls f on n elements in two pieces of memory. Sound because it checks that
// they are there.
func apply(f reduce.Func, dst, src []byte, kind reduce.Kind, n int) {
	if bytes := n * kind.Size(); len(dst) < bytes || len(src) < bytes {
		panic("the test's memory is too short")
	}
	f(unsafe.Pointer(unsafe.SliceData(dst)), unsafe.Pointer(unsafe.SliceData(src)), n)
}

// pool is memory full of elements that are worth combining: of all numbers, and
// often the extreme and the special.
func pool(kind reduce.Kind, bytes int, random *rand.Rand) []byte {
	b := aligned(bytes)
	part, special := kind.Size(), []uint64{0, 1, math.MaxUint64, 1 << (8*min(kind.Size(), 8) - 1), 1<<(8*min(kind.Size(), 8)-1) - 1}
	switch kind {
	case reduce.Float32, reduce.Complex64:
		part, special = 4, nil
		for _, x := range specials() {
			special = append(special, uint64(math.Float32bits(float32(x))))
		}
		special = append(special, 1, 1<<31|1, 0x7f800001, 0xffc12345)
	case reduce.Float64, reduce.Complex128:
		part, special = 8, nil
		for _, x := range specials() {
			special = append(special, math.Float64bits(x))
		}
		special = append(special, 1, 1<<63|1, 0x7ff0000000000001, 0xfff8000000012345)
	}
	var word [8]byte
	for i := 0; i < len(b); i += part {
		x := random.Uint64()
		if random.IntN(2) == 0 {
			x = special[random.IntN(len(special))]
		}
		binary.LittleEndian.PutUint64(word[:], x)
		copy(b[i:], word[:part])
	}
	return b
}

func specials() []float64 {
	return []float64{
		0, math.Copysign(0, -1), 1, -1, math.Inf(1), math.Inf(-1), math.NaN(), math.Copysign(math.NaN(), -1),
		math.MaxFloat64, -math.MaxFloat64, math.MaxFloat32, math.SmallestNonzeroFloat32, 1.5, -2.25,
	}
}

// same tells whether two pieces of memory hold the same elements, bit for bit but
// that any NaN is like any other: which one comes of a NaN is not said.
func same(kind reduce.Kind, a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	switch kind {
	case reduce.Float32, reduce.Complex64:
		for i := 0; i < len(a); i += 4 {
			x, y := binary.LittleEndian.Uint32(a[i:]), binary.LittleEndian.Uint32(b[i:])
			if x != y && !(isNaN(math.Float32frombits(x)) && isNaN(math.Float32frombits(y))) {
				return false
			}
		}
	case reduce.Float64, reduce.Complex128:
		for i := 0; i < len(a); i += 8 {
			x, y := binary.LittleEndian.Uint64(a[i:]), binary.LittleEndian.Uint64(b[i:])
			if x != y && !(isNaN(math.Float64frombits(x)) && isNaN(math.Float64frombits(y))) {
				return false
			}
		}
	default:
		return false
	}
	return true
}

func isNaN[F float32 | float64](x F) bool { return x != x }
