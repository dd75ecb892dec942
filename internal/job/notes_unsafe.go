package job

import (
	"sync/atomic"
	"unsafe"
)

// A note is a line that a rank stores in a file of another: number behind the rest, which are the history of its call,
// the number of the last note that it has read of the other's, and the data.
type note struct {
	number  atomic.Uint32
	read    uint32
	history uint64
	data    [mostInNote]byte
}

// mostInNote is how many bytes a note has room for.
const mostInNote = lineBytes - 16

// A noteFile is a rank's notes to another, in the block of that. That stores read, the number of the last that it
// has read.
type noteFile struct {
	slots [noteSlots]note
	read  atomic.Uint32
	_     [lineBytes - 4]byte
}

const noteFileBytes = int(unsafe.Sizeof(noteFile{}))

func notesOffset(size int) int { return boardOffset(size) + boardBytes(size) }

// fileOver is the file of a rank in a block of blockLength, which has one. It is sound as traysOver is: files begin
// at a line.
func fileOver(block []byte, size, rank int) *noteFile {
	files := block[notesOffset(size):blockLength(size)]
	file := files[rank*noteFileBytes:][:noteFileBytes]
	return (*noteFile)(unsafe.Pointer(unsafe.SliceData(file)))
}
