package world

import (
	"sync/atomic"
	"unsafe"
)

// A meetingBlock is one rank's flags of a Meeting, a line for each. Who writes:
//
//	round k    the rank 2^k before, the number of the meeting it has come to
//	           and, in either of two words in turn, its history: a rank that
//	           is told of the next meeting may still have to look at this one's
//	arrived    every rank, by atomic add, in the block of rank 0 only, after it
//	           has added its history to histories, in the same line
//	released   the number of the last meeting that all have come to: in the block
//	           of rank 0 by the last to come, in others by the parent in the tree
//	left       the owner, its rank + 1, when it leaves the job
//	leaver     the first rank that leaves the job, in the block of rank 0 only
type meetingBlock struct{ base unsafe.Pointer }

const (
	lineBytes    = 64
	meetingLines = 36
	arrivedLine  = 32

	// MeetingBytes is the length of a rank's block of a Meeting.
	MeetingBytes = meetingLines * lineBytes
)

// meetingBlockOver is sound for memory of MeetingBytes that is aligned to 8, which
// device memory is, and which stays mapped as long as the device is open.
func meetingBlockOver(memory []byte) meetingBlock {
	memory = memory[:MeetingBytes]
	return meetingBlock{unsafe.Pointer(unsafe.SliceData(memory))}
}

func (b *meetingBlock) line(i int) *atomic.Uint32 {
	return (*atomic.Uint32)(unsafe.Add(b.base, i*lineBytes))
}

func (b *meetingBlock) round(k int) *atomic.Uint32 { return b.line(k) }
func (b *meetingBlock) history(k int, number uint32) *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Add(b.base, k*lineBytes+8+8*int(number&1)))
}

func (b *meetingBlock) histories() *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Add(b.base, arrivedLine*lineBytes+8))
}

func (b *meetingBlock) arrived() *atomic.Uint32  { return b.line(arrivedLine) }
func (b *meetingBlock) released() *atomic.Uint32 { return b.line(arrivedLine + 1) }
func (b *meetingBlock) left() *atomic.Uint32     { return b.line(arrivedLine + 2) }
func (b *meetingBlock) leaver() *atomic.Uint32   { return b.line(arrivedLine + 3) }
