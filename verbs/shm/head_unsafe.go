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
//
// Every process that maps the segment can write to all of it. What is read of it, by whom, and how that is
// checked:
//
//	magic, size  by peers, once, when they map the segment: compared with this layout and with the
//	             length of the file, which is sealed. Whatever they are later, the length is that
//	             of the mapping.
//	closed       by peers: anything but 0 is the end of the owner.
//	sleepers     by those who ring: anything but 0 costs a system call.
//	sequence     by the kernel, for the owner: a value of a peer's ends a sleep too early or not,
//	             and sleeps that are not ended by a limit end with their contexts.
//	address,     by peers, each once an access: the range that is asked for must be in the region,
//	length,      and in the mapping, and the offset as far into a page as the address, so that
//	offset       words are aligned for peers as for the owner, or the access is StatusRemoteAccess.
//	access       by peers: a right that is not there is StatusRemoteAccess.
//	key          by peers: another than they were given is StatusRemoteAccess. Its owner only
//	             compares it, when it clears it.
//
// After the head the segment has what AllocateMemory gives, among it the rings of connections: see ring.
// What the rest means is for the layers above, which check it.
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
