package job

import (
	"sync/atomic"
	"unsafe"
)

// obituariesOver is sound for a block that is aligned to 8, as device memory is, and
// blockBytes keeps, and which stays mapped as long as the device is open.
func obituariesOver(block []byte, size int) []atomic.Uint64 {
	n := obituaryWords(size)
	words := block[blockBytes:][:8*n]
	return unsafe.Slice((*atomic.Uint64)(unsafe.Pointer(unsafe.SliceData(words))), n)
}
