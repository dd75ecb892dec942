package reduce_test

import (
	"fmt"
	"testing"
	"unsafe"

	"github.com/onesided/rma/aggregate/reduce"
)

// BenchmarkApply combines 64 KB with 64 KB, both in the cache, and one element with
// one, at each level.
func BenchmarkApply(b *testing.B) {
	const most = 64 << 10
	// Of 0, which no operation changes: floats that become subnormal or infinite may
	// take longer.
	dst, src := make([]uint64, most/8), make([]uint64, most/8)
	for kind, op := range combining() {
		for _, n := range []int{1, most / kind.Size()} {
			for _, level := range reduce.Levels() {
				b.Run(fmt.Sprintf("%v/%v/%d/%v", kind, op, n, level), func(b *testing.B) {
					apply := lookup(b, level, kind, op)
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
