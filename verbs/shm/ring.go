package shm

import (
	"sync/atomic"

	"github.com/onesided/rma/verbs"
)

// A ring carries the messages of one direction of a connection. It lies in memory
// that both sides reach: the consumer's. Who writes what:
//
//	head     the producer: bytes ever written, published after the frame.
//	tail     the consumer: bytes ever taken out.
//	answer   the side that accepts or rejects the connection, or that withdraws;
//	         the first decides. It comes after locator, which tells where the
//	         ring of the other direction is.
//	fault    the consumer: the status that the message at tail ended with.
//	left     either side, a bit each, when it will not touch the ring again.
//
// Neither side trusts the other: a frame that does not fit is a fault, and so is a tail
// that cannot be.
type ring struct {
	*ringWords
	data []byte
}

type ringWords struct {
	head atomic.Uint64
	_    [56]byte
	tail atomic.Uint64
	_    [56]byte

	locator atomic.Uint64
	answer  atomic.Uint32
	fault   atomic.Uint32
	left    atomic.Uint32
	_       [44]byte
}

const (
	// ringBytes of data and ringHeader of words is what a connection takes a
	// direction.
	ringBytes  = 32 << 10
	ringHeader = 192
	ringMemory = ringHeader + ringBytes

	frameHeader = 16
	// maxChunk bytes of a message are in one frame, so that producer and
	// consumer of a long message work at the same time.
	maxChunk = ringBytes/4 - frameHeader
)

// Values of answer.
const (
	answerNone uint32 = iota
	answerAccepted
	answerRejected
	// answerWithdrawn is by the side that asked, when nobody had answered.
	answerWithdrawn
)

// Bits of left.
const (
	leftByConsumer uint32 = 1 << iota
	leftByProducer
	// leftInFailure goes with one of the others: the queue pair failed before it was closed.
	leftInFailure

	leftByBoth = leftByConsumer | leftByProducer
)

// frame is one chunk of a message.
type frame struct {
	length    uint32
	flags     uint32
	immediate uint32
	// written is the length of an RDMA write that this announces.
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

// write copies from into the ring at position; positions count bytes ever written.
func (r *ring) write(position uint64, from []byte) {
	n := copy(r.data[position%ringBytes:], from)
	copy(r.data, from[n:])
}

// read copies out of the ring at position.
func (r *ring) read(into []byte, position uint64) {
	n := copy(into, r.data[position%ringBytes:])
	copy(into[n:], r.data)
}

// peek gives the frame at tail. ok is false if there is none; bad tells that what
// is there is no frame.
func (r *ring) peek() (f frame, ok, bad bool) {
	tail := r.tail.Load()
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
	if f.length > maxChunk || f.bytes() > there || f.flags&^frameFlags != 0 {
		return frame{}, false, true
	}
	return f, true, false
}

// leave says that one side will not touch the ring again.
func (r *ring) leave(side uint32) { r.left.Or(side) }

// faulted is the status that the consumer ended the connection with.
func (r *ring) faulted() verbs.Status {
	status := verbs.Status(r.fault.Load())
	if status > verbs.StatusFlushed {
		return verbs.StatusRemoteOperation
	}
	return status
}
