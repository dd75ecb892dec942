package shm

import (
	"fmt"

	"github.com/onesided/rma/verbs"
)

// PostReceive posts receives in order.
func (q *queuePair) PostReceive(requests []verbs.ReceiveRequest) (int, error) {
	q.mu.Lock()
	defer q.unlock()
	if q.closed {
		return 0, fmt.Errorf("shm: PostReceive: %w", verbs.ErrClosed)
	}
	for i := range requests {
		if len(requests[i].Segments) > maxSegments {
			q.drive()
			return i, argumentError("PostReceive: %d segments, at most %d are allowed", len(requests[i].Segments), maxSegments)
		}
		if q.receiveCount == len(q.receives) {
			q.drive()
			return i, verbs.ErrQueueFull
		}
		r := &q.receives[(q.receiveFirst+q.receiveCount)%len(q.receives)]
		r.id = requests[i].ID
		r.segments = append(r.segments[:0], requests[i].Segments...)
		r.length = 0
		for _, s := range r.segments {
			r.length += len(s.Memory)
		}
		q.receiveCount++
	}
	q.drive()
	return len(requests), nil
}

// takeFrames fills receives from the ring in. It reports whether any frame was taken.
func (q *queuePair) takeFrames() (moved bool) {
	for q.State() == verbs.StateReady && q.receiveCount > 0 {
		f, ok, bad := q.in.peek(q.consumed.Load())
		if bad {
			q.refuseFrame(verbs.StatusRemoteInvalid, fmt.Errorf("shm: malformed frame from the peer: %w", verbs.StatusRemoteInvalid))
			return true
		}
		if !ok {
			return moved
		}
		q.takeFrame(&f)
		moved = true
	}
	return moved
}

// refuseFrame tells the sender how its message ended, and ends the connection.
func (q *queuePair) refuseFrame(status verbs.Status, err error) {
	q.in.fault.Store(uint32(status))
	q.fail(err)
}

func (q *queuePair) takeFrame(f *frame) {
	r := &q.receives[q.receiveFirst]
	tail := q.consumed.Load()
	if q.filled == 0 && f.flags&frameWrite == 0 && !q.device.regions.hold(r.segments, verbs.LocalWrite) {
		q.received(verbs.StatusLocalProtection, verbs.OpReceive, 0, 0)
		q.refuseFrame(verbs.StatusRemoteOperation, fmt.Errorf("shm: receive: %w", verbs.StatusLocalProtection))
		return
	}
	if int(f.length) > r.length-q.filled {
		q.received(verbs.StatusLocalLength, verbs.OpReceive, 0, 0)
		q.refuseFrame(verbs.StatusRemoteInvalid, fmt.Errorf("shm: message of more than %d bytes: %w", r.length, verbs.StatusLocalLength))
		return
	}
	at, skip, left := tail+frameHeader, q.filled, int(f.length)
	for _, s := range r.segments {
		if left == 0 {
			break
		}
		if skip >= len(s.Memory) {
			skip -= len(s.Memory)
			continue
		}
		part := s.Memory[skip:min(len(s.Memory), skip+left)]
		q.in.read(part, at)
		at += uint64(len(part))
		left -= len(part)
		skip = 0
	}
	q.filled += int(f.length)
	if f.flags&frameLast != 0 {
		opcode, bytes := verbs.OpReceive, uint32(q.filled)
		if f.flags&frameImmediate != 0 {
			opcode = verbs.OpReceiveImmediate
		}
		if f.flags&frameWrite != 0 {
			bytes = f.written
		}
		q.received(verbs.StatusSuccess, opcode, bytes, f.immediate)
	}
	q.consumed.Store(tail + f.bytes())
	q.in.tail.Store(tail + f.bytes())
}
