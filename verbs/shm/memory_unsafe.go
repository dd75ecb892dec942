package shm

import (
	"sync/atomic"
	"unsafe"
)

// ringOver returns a ring over memory. It is sound if memory has ringMemory bytes, aligned to 8, that live as long as
// the ring. Rings are allocated that way, and rings of peers are checked where they are mapped.
func ringOver(memory []byte) ring {
	return ring{(*ringWords)(unsafe.Pointer(unsafe.SliceData(memory))), memory[ringHeader:ringMemory]}
}

// alignedBytes returns n zeroed bytes of the Go heap, aligned to 8.
func alignedBytes(n int) []byte {
	words := make([]uint64, (n+7)/8)
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), n)
}

func compareSwap(word *atomic.Uint64, compare, value uint64) uint64 {
	for {
		old := word.Load()
		if old != compare || word.CompareAndSwap(compare, value) {
			return old
		}
	}
}
