package world

import (
	"sync/atomic"
	"unsafe"
)

// A tray is where a rank that maps a block tells its owner of the pipe by which it is going to send:
// told is 1 behind the others.
type tray struct{ told, address, length, rkey atomic.Uint64 }

// blockLength is how long the block of a rank is in a World of so many: flags of meetings, the ledger,
// obituaries, and a tray for each.
func blockLength(size int) int {
	return blockBytes + 8*obituaryWords(size) + int(unsafe.Sizeof(tray{}))*size
}

// traysOver is sound for a block of blockLength that is aligned to 8, as device memory is, and which
// stays mapped as long as the device is open.
func traysOver(block []byte, size int) []tray {
	trays := block[blockBytes+8*obituaryWords(size) : blockLength(size)]
	return unsafe.Slice((*tray)(unsafe.Pointer(unsafe.SliceData(trays))), size)
}
