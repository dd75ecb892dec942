package reduce_test

import (
	"fmt"
	"testing"
	"unsafe"

	"github.com/onesided/rma/aggregate/reduce"
)

// use makes the lookups of a test of one level.
func use(t testing.TB, level reduce.Level) {
	t.Helper()
	previous, err := reduce.Use(level)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = reduce.Use(previous) })
}

// BenchmarkApply combines 64 KB into 64 KB, both in the cache, and one element into
// one.
func BenchmarkApply(b *testing.B) {
	const most = 64 << 10
	// The words are 0, which no operation changes: a sum of floats that becomes
	// subnormal or infinite would be timed at that.
	dst, src := make([]uint64, most/8), make([]uint64, most/8)
	for kind := reduce.Int8; kind <= reduce.Complex128; kind++ {
		for op := reduce.Sum; op <= reduce.Xor; op++ {
			if reduce.Supported(kind, op) != nil {
				continue
			}
			for _, n := range []int{1, most / kind.Size()} {
				for _, level := range reduce.Levels() {
					b.Run(fmt.Sprintf("%v/%v/%d/%v", kind, op, n, level), func(b *testing.B) {
						use(b, level)
						apply, err := reduce.Lookup(kind, op)
						if err != nil {
							b.Fatal(err)
						}
						b.SetBytes(int64(n * kind.Size()))
						b.ReportAllocs()
						for b.Loop() {
							apply(unsafe.Pointer(&dst[0]), unsafe.Pointer(&src[0]), n)
						}
					})
				}
			}
		}
	}
}
