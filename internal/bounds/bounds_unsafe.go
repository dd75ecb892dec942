package bounds

import (
	"sync/atomic"
	"unsafe"
)

// Address returns the address of memory, or 0 if memory is nil. The address never becomes a pointer again.
func Address(memory []byte) uint64 {
	return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(memory))))
}

// Word returns the first 8 bytes of memory as an atomic. The caller has checked their length and alignment.
func Word(memory []byte) *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Pointer(unsafe.SliceData(memory)))
}
