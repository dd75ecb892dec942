//go:build linux

package shm

import (
	"sync/atomic"
	"unsafe"
)

// segmentHead is the start of a segment. These are its words and their writers:
//
//	magic, size  the owner, before it gives any peer the descriptor.
//	closed       the owner, 1 when it has closed its device.
//	channel      see channelWords.
//	regions      the owner; peers read them. An entry is valid while its key is
//	             the one that the reader was given: the owner stores the key last
//	             and clears it first, and a reader loads the key again after it
//	             has read the rest.
//
// Every process that maps the segment can write to all of it. These are the reads, and how their values are checked:
//
//	magic, size  by peers, once, when they map the segment: compared with this layout and with the
//	             length of the file, which is sealed. Later the length of the mapping is used.
//	closed       by peers: anything but 0 is the end of the owner.
//	sleepers     by wakers: anything but 0 costs a system call.
//	sequence     by the kernel, for the owner: a value of a peer ends a sleep too early or not,
//	             and sleeps that are not ended by a limit end with their contexts.
//	address,     by peers, each once an access: the requested range must be in the region,
//	length,      and in the mapping, and the offset as far into a page as the address, so that
//	offset       words are aligned for peers as for the owner, or the access is StatusRemoteAccess.
//	access       by peers: a missing right is StatusRemoteAccess.
//	key          by peers: another than they were given is StatusRemoteAccess. The owner only
//	             compares it, when it clears it.
//
// After the head the segment has the memory of AllocateMemory, including the rings of connections: see ring. The layers
// above check the contents of the rest.
type segmentHead struct {
	magic   atomic.Uint64
	size    atomic.Uint64
	closed  atomic.Uint32
	_       [44]byte
	channel channelWords
	regions [maxRegions]regionEntry
}

// channelWords are the words of a futexChannel. A sleeper adds itself to sleepers and takes itself out. A waker that
// finds one adds 1 to sequence.
type channelWords struct {
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
	// segmentMagic identifies the layout and changes with it.
	segmentMagic = 0x1a7e_524d_4100_0003
	notInSegment = 1<<64 - 1
)

// The head fits before the first allocation.
var _ [segmentStart - unsafe.Sizeof(segmentHead{})]byte

// headOf returns the head of a segment. It is sound because a mapping is page-aligned and longer than a head, which is
// checked where it is made.
func headOf(memory []byte) *segmentHead {
	return (*segmentHead)(unsafe.Pointer(unsafe.SliceData(memory)))
}

func (h *segmentHead) introduce(size uint64) {
	h.size.Store(size)
	h.magic.Store(segmentMagic)
}
