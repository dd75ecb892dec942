package job

import (
	"sync/atomic"
	"unsafe"
)

// A tray is where a rank that maps a block tells its owner of the pipe by which it is going to send:
// told, stored behind the others, is one more than where in the region that begins.
type tray struct{ told, address, length, rkey atomic.Uint64 }

// blockLength is how long the block of a rank is in a World of so many: flags of meetings, the ledger,
// obituaries, a tray for each, and from a line on the table, the board and the files of notes.
func blockLength(size int) int { return notesOffset(size) + notesBytes(size) }

func tableOffset(size int) int {
	return (traysOffset(size) + int(unsafe.Sizeof(tray{}))*size + lineBytes - 1) &^ (lineBytes - 1)
}

func traysOffset(size int) int { return blockBytes + 8*obituaryWords(size) }

// tableOver is the table in a block of blockLength.
func tableOver(block []byte, size int) []byte { return block[tableOffset(size):boardOffset(size)] }

// traysOver is sound for a block of blockLength that is aligned to 8, as device memory is, and which
// stays mapped as long as the device is open.
func traysOver(block []byte, size int) []tray {
	trays := block[traysOffset(size):tableOffset(size)]
	return unsafe.Slice((*tray)(unsafe.Pointer(unsafe.SliceData(trays))), size)
}
