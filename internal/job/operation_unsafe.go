package job

import (
	"unsafe"

	"github.com/onesided/rma/aggregate/reduce"
)

// combine is sound for slices of one length, as callers have them, of the type that the kernel is of.
func combine[T any](kernel reduce.Func, into, other []T) {
	if len(into) > 0 {
		_ = other[len(into)-1]
		kernel(unsafe.Pointer(unsafe.SliceData(into)), unsafe.Pointer(unsafe.SliceData(other)), len(into))
	}
}

// combineBytes combines whole elements of a size: as many as into and other have room for.
func combineBytes(kernel reduce.Func, into, other []byte, size int) {
	if n := min(len(into), len(other)) / size; n > 0 {
		kernel(unsafe.Pointer(unsafe.SliceData(into)), unsafe.Pointer(unsafe.SliceData(other)), n)
	}
}
