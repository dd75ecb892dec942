//go:build amd64

package reduce

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

// A vector combines n bytes. One of AVX2 needs at least 32.
type vector func(dst, src *byte, n int)

// Below these numbers of bytes the plain functions are as fast.
const (
	leastAVX2   = 32
	leastAVX512 = 64
)

func withAVX2() *functions {
	if !cpu.X86.HasAVX2 {
		return nil
	}
	f := plain
	f[Float64][Sum] = sumBy[float64](sumFloat64AVX2, leastAVX2)
	return &f
}

func withAVX512() *functions {
	if x := cpu.X86; !x.HasAVX512F || !x.HasAVX512BW || !x.HasAVX512DQ || !x.HasAVX512VL {
		return nil
	}
	f := plain
	f[Float64][Sum] = sumBy[float64](sumFloat64AVX512, leastAVX512)
	return &f
}

// sumBy is sum that leaves what has at least so many bytes to a vector. As with the
// others below, it is sound because the vector combines the bytes of n elements
// exactly.
func sumBy[T Element](v vector, least int) Func {
	return func(dst, src unsafe.Pointer, n int) {
		if n == 1 {
			*(*T)(dst) += *(*T)(src)
			return
		}
		var e T
		bytes := n * int(unsafe.Sizeof(e))
		if bytes < least {
			sum[T](dst, src, n)
			return
		}
		v((*byte)(dst), (*byte)(src), bytes)
	}
}
