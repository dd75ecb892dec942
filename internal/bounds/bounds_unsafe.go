package bounds

import (
	"sync/atomic"
	"unsafe"
)

// Address is where memory is, 0 if it is nil. It never becomes a pointer again.
func Address(memory []byte) uint64 {
	return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(memory))))
}

// Word is the first 8 bytes of memory, which the caller has checked to be there and aligned.
func Word(memory []byte) *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Pointer(unsafe.SliceData(memory)))
}
