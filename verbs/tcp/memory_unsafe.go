package tcp

import (
	"sync/atomic"
	"unsafe"
)

// addressOf is where memory is. The number is compared with others, never turned
// back into a pointer; registered memory does not move, because its region, which is
// of the heap, refers to it.
func addressOf(memory []byte) uint64 {
	return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(memory))))
}

// wordAt is the first 8 bytes of memory, which the caller has checked to be there
// and aligned.
func wordAt(memory []byte) *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Pointer(unsafe.SliceData(memory)))
}
