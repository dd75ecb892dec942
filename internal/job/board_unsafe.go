package job

import (
	"sync/atomic"
	"unsafe"
)

// A boardSlot has what a root broadcasts in the call of a number, stored behind the rest. readers are how many have
// yet to read it; the last of them stores the number in freed. The root stores all else.
type boardSlot struct {
	number, readers, freed atomic.Uint32
	_                      uint32
	history                atomic.Uint64
	data                   [mostOnBoard]byte
	_                      [8]byte
}

const boardSlotBytes = int(unsafe.Sizeof(boardSlot{}))

func boardOffset(size int) int { return tableOffset(size) + tableBytes(size) }

// boardOver is the slot of a call in the board of a block of blockLength, which has one. It is sound as traysOver is:
// the board begins at a line.
func boardOver(block []byte, size int, number uint32) *boardSlot {
	board := block[boardOffset(size):notesOffset(size)]
	slot := board[int(number%boardSlots)*boardSlotBytes:][:boardSlotBytes]
	return (*boardSlot)(unsafe.Pointer(unsafe.SliceData(slot)))
}
