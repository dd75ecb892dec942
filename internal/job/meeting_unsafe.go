package job

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
//	callers    beside arrived: for each call 1 + the last rank that has come by it, by every rank
//	           before it adds itself to arrived; the last to come clears them
//	released   the number of the last meeting that all have come to: in the block
//	           of rank 0 by the last to come, in others by that one, or by the parent;
//	           beside it, and before it, by which calls they have come, if these differ
//	passed     in the block of rank 0, in the same line: the last meeting in which the last to
//	           come releases those whose parent rank 0 is, before it releases rank 0
//	left       the owner, its rank + 1, when it leaves the job or the team; beside it, from
//	           the beginning, the context of that, the last meeting that it has come to, and
//	           a rank because of which it has given one up; see missing
//	leaver     the first rank that leaves the job, in the block of rank 0 only
type meetingBlock struct{ base unsafe.Pointer }

const (
	lineBytes    = 64
	meetingLines = 36
	arrivedLine  = 32

	// MeetingBytes is the length of a rank's block of a Meeting.
	MeetingBytes = meetingLines * lineBytes
)

// A tallyBlock is the words of a rank's block for tallies among ranks that map each other.
// Who writes:
//
//	arrived    every mate, by atomic add, in the block of the one that leads: how many have
//	           come to the tally at hand; it clears that
//	callers    as of a meetingBlock, beside arrived
//	told       the one that leads, the number of the last tally that has come to its end,
//	           after its result, arrivals, any and by which calls ranks have come, if these
//	           differ, for the owner, in the same line
//	leaving    every mate, by atomic add, in the block of the one that leads: how many have
//	           come to EndTally; the last one clears that
//	passed     that one, the number of the last tally that all have come to EndTally of
//	absent     a rank that has left, with the last tally that it can have begun, in the block
//	           of the one that leads: by who has heard of it; see missing
//	count[r]   every mate, by atomic add, in the block of the one that leads: how many have
//	           sent something to rank r; it clears that before it writes told
type tallyBlock struct{ base unsafe.Pointer }

const (
	arrivedLineOfTally = iota
	toldLine
	leavingLine
	passedLine
	absentLine
	tallyLines
)

// TallyBytes is how much of a rank's block tallies of so many ranks take.
func TallyBytes(ranks int) int {
	return (tallyLines*lineBytes + 4*ranks + lineBytes - 1) &^ (lineBytes - 1)
}

// tally is sound for a block that has TallyBytes from at on, as NewMeeting and block look that
// every one has, and for an at that is a multiple of a line.
func (b *meetingBlock) tally(at int) tallyBlock { return tallyBlock{unsafe.Add(b.base, at)} }

func (b tallyBlock) word(at int) *atomic.Uint32 { return (*atomic.Uint32)(unsafe.Add(b.base, at)) }

func (b tallyBlock) arrived() *atomic.Uint32  { return b.word(arrivedLineOfTally * lineBytes) }
func (b tallyBlock) told() *atomic.Uint32     { return b.word(toldLine * lineBytes) }
func (b tallyBlock) arrivals() *atomic.Uint32 { return b.word(toldLine*lineBytes + 4) }
func (b tallyBlock) any() *atomic.Uint32      { return b.word(toldLine*lineBytes + 8) }
func (b tallyBlock) callers() callers {
	return callers{unsafe.Add(b.base, arrivedLineOfTally*lineBytes+callersAt)}
}
func (b tallyBlock) differing() *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Add(b.base, toldLine*lineBytes+16))
}
func (b tallyBlock) leaving() *atomic.Uint32 { return b.word(leavingLine * lineBytes) }
func (b tallyBlock) passed() *atomic.Uint32  { return b.word(passedLine * lineBytes) }
func (b tallyBlock) absent() *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Add(b.base, absentLine*lineBytes))
}

func (b tallyBlock) count(rank int) *atomic.Uint32 { return b.word(tallyLines*lineBytes + 4*rank) }

// callers are words in a line of a block that has this much of it left for them.
type callers struct{ base unsafe.Pointer }

const (
	callersAt = 16
	// MostCalls is how many calls a Meeting tells apart, with 0.
	MostCalls = (lineBytes - callersAt) / 4
)

func (b callers) last(call uint8) *atomic.Uint32 {
	return (*atomic.Uint32)(unsafe.Add(b.base, 4*int(call%MostCalls)))
}

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

func (b *meetingBlock) callers() callers {
	return callers{unsafe.Add(b.base, arrivedLine*lineBytes+callersAt)}
}
func (b *meetingBlock) differing() *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Add(b.base, (arrivedLine+1)*lineBytes+8))
}
func (b *meetingBlock) arrived() *atomic.Uint32  { return b.line(arrivedLine) }
func (b *meetingBlock) released() *atomic.Uint32 { return b.line(arrivedLine + 1) }
func (b *meetingBlock) passed() *atomic.Uint32 {
	return (*atomic.Uint32)(unsafe.Add(b.base, (arrivedLine+1)*lineBytes+4))
}
func (b *meetingBlock) left() *atomic.Uint32 { return b.line(arrivedLine + 2) }
func (b *meetingBlock) context() *atomic.Uint32 {
	return (*atomic.Uint32)(unsafe.Add(b.base, (arrivedLine+2)*lineBytes+4))
}
func (b *meetingBlock) come() *atomic.Uint32 {
	return (*atomic.Uint32)(unsafe.Add(b.base, (arrivedLine+2)*lineBytes+8))
}
func (b *meetingBlock) absent() *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Add(b.base, (arrivedLine+2)*lineBytes+16))
}
func (b *meetingBlock) leaver() *atomic.Uint32 { return b.line(arrivedLine + 3) }
