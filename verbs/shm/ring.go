package shm

import (
	"sync/atomic"

	"github.com/onesided/rma/verbs"
)

// A ring carries the messages of one direction of a connection. It lies in memory that both sides access: the
// consumer's. These are its words and their writers:
//
//	head     the producer: bytes ever written, published after the frame.
//	tail     the consumer: bytes ever taken out.
//	response the side that accepts or rejects the connection, or that withdraws;
//	         the first decides. It is stored after locator, which is where the
//	         ring of the other direction is.
//	fault    the consumer: the status that the message at tail ended with.
//	left     either side, a bit each, when it will not access the ring again.
//
// Either side can write to all of it, and neither trusts the other: each keeps the values of its own words in its queue
// pair. These are the reads, and how their values are checked:
//
//	head     by the consumer, once a frame: more than a frame header and at most a ring after
//	         the tail that the consumer keeps, or the frame is a fault.
//	frames   by the consumer: the header is copied, and then checked by valid and against head. Data
//	         is copied into a receive, as much as that has room for; its contents are not checked.
//	tail     by the producer, once: from the last tail to what it has written, or the
//	         connection fails.
//	locator  by the side that connects, once: an offset of a ring in the peer's segment, or
//	         the length of the reason of a rejection, of which it reads at most maxReason.
//	response by the side that connects: any other value than the four is no response.
//	fault    by the producer: a value that is no status is StatusRemoteOperation.
//	left     by both: two bits that end the connection, and one that chooses its error.
type ring struct {
	*ringWords
	data []byte
}

type ringWords struct {
	head atomic.Uint64
	_    [56]byte
	tail atomic.Uint64
	_    [56]byte

	locator  atomic.Uint64
	response atomic.Uint32
	fault    atomic.Uint32
	left     atomic.Uint32
	_        [44]byte
}

const (
	// ringBytes of data and ringHeader of words are the memory of a connection per direction.
	ringBytes  = 32 << 10
	ringHeader = 192
	ringMemory = ringHeader + ringBytes

	frameHeader = 16
	// maxChunk is the maximum number of bytes of a message in one frame, so that producer and consumer of a long
	// message work at the same time.
	maxChunk = ringBytes/4 - frameHeader
)

// Values of response.
const (
	responseNone uint32 = iota
	responseAccepted
	responseRejected
	// responseWithdrawn is stored by the side that connects, while there is no response.
	responseWithdrawn
)

// Bits of left.
const (
	leftByConsumer uint32 = 1 << iota
	leftByProducer
	// leftInFailure accompanies one of the other bits: the queue pair failed before it was closed.
	leftInFailure

	leftByBoth = leftByConsumer | leftByProducer
)

// frame is one chunk of a message.
type frame struct {
	length    uint32
	flags     uint32
	immediate uint32
	// written is the length of the RDMA write that this frame announces.
	written uint32
}

// Flags of a frame.
const (
	frameLast uint32 = 1 << iota
	frameImmediate
	frameWrite
	frameFlags = frameLast | frameImmediate | frameWrite
)

func (f *frame) bytes() uint64 { return frameHeader + (uint64(f.length)+7)&^7 }

// write copies from into the ring at position. Positions count bytes ever written.
func (r *ring) write(position uint64, from []byte) {
	n := copy(r.data[position%ringBytes:], from)
	copy(r.data, from[n:])
}

// read copies out of the ring at position.
func (r *ring) read(into []byte, position uint64) {
	n := copy(into, r.data[position%ringBytes:])
	copy(into[n:], r.data)
}

// peek returns the frame at position tail, which the consumer keeps itself. ok is false if there is no frame. bad
// reports that the data there is not a frame.
func (r *ring) peek(tail uint64) (f frame, ok, bad bool) {
	there := r.head.Load() - tail
	if there == 0 {
		return frame{}, false, false
	}
	if there > ringBytes || there < frameHeader {
		return frame{}, false, true
	}
	var header [frameHeader]byte
	r.read(header[:], tail)
	f.decode(&header)
	if f.bytes() > there || !f.valid() {
		return frame{}, false, true
	}
	return f, true, false
}

// valid reports whether a correct producer writes such a frame. A frame that is not the last of its message is full, so
// a message has an end, however much a producer writes. A frame that announces an RDMA write has no data: the receive
// that it completes need not have memory.
func (f *frame) valid() bool {
	switch {
	case f.length > maxChunk || f.flags&^frameFlags != 0:
		return false
	case f.flags&frameWrite != 0:
		return f.flags == frameFlags && f.length == 0
	case f.flags&frameLast == 0:
		return f.length == maxChunk
	}
	return true
}

// leave announces that one side will not access the ring again.
func (r *ring) leave(side uint32) { r.left.Or(side) }

// faulted returns the status with which the consumer ended the connection.
func (r *ring) faulted() verbs.Status {
	status := verbs.Status(r.fault.Load())
	if status > verbs.StatusFlushed {
		return verbs.StatusRemoteOperation
	}
	return status
}
