//go:build linux

package shm

import (
	"sync/atomic"
	"unsafe"
)

// segmentHead starts a segment. Who writes what:
//
//	magic, size  the owner, before it gives anyone the descriptor.
//	closed       the owner, 1 when it has closed its device.
//	bell         see bellWords.
//	regions      the owner; peers read them. An entry is valid while its key is
//	             that which the reader was given: the owner stores the key last
//	             and clears it first, and a reader looks at the key again after it
//	             has read the rest.
type segmentHead struct {
	magic   atomic.Uint64
	size    atomic.Uint64
	closed  atomic.Uint32
	_       [44]byte
	bell    bellWords
	regions [maxRegions]regionEntry
}

// bellWords are the words of a futexBell. sleepers is changed by those who sleep,
// sequence by those who ring and find a sleeper.
type bellWords struct {
	sleepers atomic.Int32
	_        [60]byte
	sequence atomic.Uint32
	_        [60]byte
}

type regionEntry struct {
	address atomic.Uint64
	length  atomic.Uint64
	offset  atomic.Uint64
	access  atomic.Uint32
	key     atomic.Uint32
}

const (
	// segmentMagic names the layout; it changes with it.
	segmentMagic = 0x1a7e_524d_4100_0003
	notInSegment = 1<<64 - 1
)

// The head fits before the first allocation.
var _ [segmentStart - unsafe.Sizeof(segmentHead{})]byte

// headOf is the head of a segment. Sound because a mapping is page-aligned and longer
// than a head, which is checked where it is made.
func headOf(memory []byte) *segmentHead {
	return (*segmentHead)(unsafe.Pointer(unsafe.SliceData(memory)))
}

func (h *segmentHead) introduce(size uint64) {
	h.size.Store(size)
	h.magic.Store(segmentMagic)
}
