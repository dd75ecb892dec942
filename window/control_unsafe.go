package window

import (
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/onesided/rma/internal/job"
)

// A control block is the shared memory beside a rank's window through which the
// ranks synchronize over it. It belongs to the window's target; every other rank
// maps it. Who writes which word:
//
//	meeting     the block of the window's job.Meeting, for Fence.
//	exclusive   the holder of the exclusive lock: lockWordOf its rank, or of its seat, which
//	            is numbered behind the ranks; 0 when free.
//	            Taken and given back by compare-and-swap; whoever finds the
//	            holder dead gives it back.
//	wishes      a count of locks that others have asked this rank's agent for and not been
//	            granted, written by this rank alone.
//	turn        whose turn it is when the lock is free and both want it: see turn.go. Whoever
//	            gives the exclusive lock back writes it.
//	waiters     a count of ranks that wait for the lock, by atomic add.
//	place       where the owner has made its last collective call, as text, if misuse is looked for. Others
//	            read it when they have met that call by mistake.
//	pair[o]     what rank o tells this rank: its posts and completes, whether it shares the lock, and how many of
//	            its goroutines wait for that, or that it has parted. All four words are written by o
//	            alone, except that a shared lock of a dead o is cleared by
//	            whoever finds it.
//	pair[size+s] the lock of the client that has seat s of this rank's part: see Serve.
//	            It is written by this rank for the client.
//	tally       those of the meeting for tallies, job.TallyBytes of them.
//	slot[i]     how many notifications have arrived, by atomic add.
//	stripe[i]   lock of the i-th stripe of the window: lockWordOf its holder,
//	            by compare-and-swap; see stripes.
//
// Any process that maps the block can write to all of it, so no word is an index before it has been compared with
// the number of ranks, and no loop depends on one: a wait for a word ends with the context of its call, or when the rank
// fails that it is for. A wait for a stripe has no context. It ends when the word names no rank, or a failed one.
//
// Words that different ranks write are on different cache lines, but for pairs
// in jobs of more than 64 ranks and seats, where the block would grow too large.
const (
	lineBytes = 64

	meetingAt   = 0
	exclusiveAt = job.MeetingBytes
	wishesAt    = exclusiveAt + 4
	turnAt      = exclusiveAt + 8
	waitersAt   = exclusiveAt + lineBytes
	placeAt     = waitersAt + lineBytes
	pairsAt     = placeAt + placeBytes
)

// The words of a pair. A target that has completed one exposure and posts the
// next writes complete and post of one pair in turn: they share a line, so the
// peer misses once for both.
const (
	postAt     = 0
	completeAt = 4
	sharedAt   = 8
	waitingAt  = 12
	pairBytes  = 16
)

// layout says where the words of one rank's control block lie.
type layout struct {
	pairStride  uintptr
	tallyAt     uintptr
	slotsAt     uintptr
	stripesAt   uintptr
	stripeShift uint8
	stripes     int
	bytes       uintptr
}

const (
	maxStripes     = 1024
	minStripeShift = 6
)

// layoutOf is the layout for a job of ranks, clients in seats, a window of windowBytes and a
// number of notification slots.
func layoutOf(ranks, seats int, windowBytes uint64, slots int) layout {
	l := layout{pairStride: lineBytes, stripeShift: minStripeShift}
	if ranks+seats > 64 {
		l.pairStride = pairBytes
	}
	if windowBytes > maxStripes<<minStripeShift {
		l.stripeShift = uint8(bits.Len64((windowBytes - 1) / maxStripes))
	}
	l.stripes = int((windowBytes+1<<l.stripeShift-1)>>l.stripeShift) + 1
	l.tallyAt = roundUp(pairsAt+uintptr(ranks+seats)*l.pairStride, lineBytes)
	l.slotsAt = l.tallyAt + uintptr(job.TallyBytes(ranks))
	l.stripesAt = l.slotsAt + uintptr(slots)*lineBytes
	l.bytes = roundUp(l.stripesAt+uintptr(l.stripes)*lineBytes, 4096)
	return l
}

func roundUp(n, to uintptr) uintptr { return (n + to - 1) &^ (to - 1) }

// control is a control block as this process sees it.
type control struct {
	base unsafe.Pointer
	layout
}

// word is sound for every offset the layout gives: the block has layout.bytes
// bytes (checked where it is mapped) and every offset is a multiple of 4.
func (c *control) word(at uintptr) *atomic.Uint32 {
	return (*atomic.Uint32)(unsafe.Add(c.base, at))
}

func (c *control) exclusive() *atomic.Uint32 { return c.word(exclusiveAt) }
func (c *control) wishes() *atomic.Uint32    { return c.word(wishesAt) }
func (c *control) turn() *atomic.Uint32      { return c.word(turnAt) }
func (c *control) waiters() *atomic.Uint32   { return c.word(waitersAt) }
func (c *control) pair(rank int, at uintptr) *atomic.Uint32 {
	return c.word(pairsAt + uintptr(rank)*c.pairStride + at)
}

// place is sound as word is: the layout has placeBytes there.
func (c *control) place() []byte {
	return unsafe.Slice((*byte)(unsafe.Add(c.base, placeAt)), placeBytes)
}

// slot is on an 8-byte boundary: slotsAt is a multiple of a line.
func (c *control) slot(i int) *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Add(c.base, c.slotsAt+uintptr(i)*lineBytes))
}

// stripe is the lock of the stripe that holds the window's byte at offset.
func (c *control) stripe(offset uint64) *atomic.Uint32 {
	return c.word(c.stripesAt + uintptr(offset>>c.stripeShift)*lineBytes)
}

// controlOver makes a control block of memory, which is long enough and aligned
// to a page because the device allocates and maps so.
func controlOver(memory []byte, l layout) control {
	return control{base: unsafe.Pointer(unsafe.SliceData(memory)), layout: l}
}
