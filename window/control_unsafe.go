package window

import (
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/onesided/rma/internal/job"
)

// A control block is the shared memory beside a rank's window by which ranks synchronize over it. It belongs to the
// window's target. Every other rank maps it. These are its words, with the ranks that write them:
//
//	meeting     the block of the window's job.Meeting, for Fence.
//	exclusive   the holder of the exclusive lock: lockWordOf its rank, or of its seat,
//	            which is numbered after the ranks. 0 when free. It is taken and
//	            released by compare-and-swap. A rank that finds the holder dead
//	            releases it.
//	wishes      the number of locks that other ranks have requested by messages and
//	            not been granted. Only this rank writes it.
//	turn        the side that is next when the lock is free and both sides want it:
//	            see turn.go. A rank that releases the exclusive lock writes it.
//	waiters     the number of ranks that wait for the lock, by atomic add.
//	place       the place of the owner's last collective call, as text, if misuse is
//	            looked for. Other ranks read it when they have met that call by mistake.
//	pair[o]     the words of rank o for this rank: its posts and completes, whether it
//	            shares the lock, and the number of its goroutines that wait for the
//	            lock, or that it has closed the window. Only o writes them. One
//	            exception: a rank that finds o dead clears its shared lock.
//	pair[size+s] the lock of the client that has seat s of this rank's part: see Serve.
//	            This rank writes it for the client.
//	tally       the words of the meeting for counting fences, job.TallyBytes of them.
//	slot[i]     the number of notifications that have arrived, by atomic add.
//	stripe[i]   the lock of the i-th stripe of the window: lockWordOf its holder, by
//	            compare-and-swap. See stripes.
//
// Any process that maps the block can write to all of it. So no word is an index before it has been compared with the
// number of ranks, and no loop depends on a word. A wait for a word ends with the context of its call, or when the rank
// that writes the word fails. A wait for a stripe has no context. It ends when the word names no rank, or a failed one.
//
// Words that different ranks write are on different cache lines. The exception are pairs in jobs of more than 64 ranks
// and seats, where the block would become too large.
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

// The words of a pair. A target that has completed one exposure and posts the next writes complete and post of one pair
// one after the other. They share a line, so the peer has one cache miss for both.
const (
	postAt     = 0
	completeAt = 4
	sharedAt   = 8
	waitingAt  = 12
	pairBytes  = 16
)

// layout has the offsets of the words of one rank's control block.
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

// layoutOf returns the layout for a job of ranks, clients in seats, a window of windowBytes and a number of
// notification slots.
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

// word is sound for every offset of the layout. The block has layout.bytes bytes, which is checked where it is mapped,
// and every offset is a multiple of 4.
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

// controlOver makes a control block of memory. The memory is long enough and starts at a page, because devices allocate
// and map it so.
func controlOver(memory []byte, l layout) control {
	return control{base: unsafe.Pointer(unsafe.SliceData(memory)), layout: l}
}
