package shm

import (
	"encoding/binary"
	"fmt"

	"github.com/onesided/rma/internal/bounds"
	"github.com/onesided/rma/internal/cpucopy"
	"github.com/onesided/rma/verbs"
)

// PostSend posts requests in order.
func (q *queuePair) PostSend(requests []verbs.SendRequest) (int, error) {
	q.mu.Lock()
	defer q.unlock()
	if q.closed {
		return 0, fmt.Errorf("shm: PostSend: %w", verbs.ErrClosed)
	}
	for i := range requests {
		length, err := attributes.CheckSend(&requests[i])
		if err != nil {
			q.drive()
			return i, err
		}
		if q.sendCount+q.uncovered == len(q.sends) && q.sendCount > 0 {
			q.drive()
		}
		if q.sendCount+q.uncovered >= len(q.sends) {
			q.drive()
			return i, verbs.ErrQueueFull
		}
		if q.writeAtOnce(&requests[i], length) {
			continue
		}
		slot := &q.sends[(q.sendFirst+q.sendCount)%len(q.sends)]
		slot.take(&requests[i], length)
		q.sendCount++
		// Set before the peer can respond, so that a poll after its ring finds this.
		q.waiting.Store(true)
	}
	if q.sendCount > 0 || q.State() == verbs.StateError {
		q.drive()
	}
	return len(requests), nil
}

// writeAtOnce executes a write that does not have to wait for earlier requests, and reports whether it did. It leaves a
// write that fails to the normal path, which finds out why.
func (q *queuePair) writeAtOnce(r *verbs.SendRequest, length int) bool {
	if q.sendCount > 0 || r.Opcode != verbs.OpRDMAWrite || q.State() != verbs.StateReady || !q.localOK(r) ||
		q.transfer(r, length, verbs.RemoteWrite) != verbs.StatusSuccess {
		return false
	}
	q.completeSend(r, verbs.StatusSuccess)
	return true
}

// take copies a request, whose slices belong to the caller, into the reused slices.
func (r *request) take(from *verbs.SendRequest, length int) {
	segments := append(r.Segments[:0], from.Segments...)
	r.SendRequest = *from
	r.length = length
	if from.Flags&verbs.Inline != 0 {
		r.inline = r.inline[:0]
		for _, s := range from.Segments {
			r.inline = append(r.inline, s.Memory...)
		}
		segments = append(segments[:0], verbs.Segment{Memory: r.inline})
	}
	r.Segments = segments
}

// advance completes what has taken effect and pushes what fits. It reports whether the peer should look.
func (q *queuePair) advance() (moved bool) {
	for q.State() == verbs.StateReady {
		progressed := q.settle()
		if q.State() == verbs.StateReady && q.pushed < q.sendCount {
			r := &q.sends[(q.sendFirst+q.pushed)%len(q.sends)]
			if q.offset == 0 && !q.localOK(&r.SendRequest) {
				progressed = q.refuseLocal() || progressed
			} else if r.Opcode <= verbs.OpSendImmediate {
				sent := q.pushMessage(r)
				moved, progressed = moved || sent, progressed || sent
			} else if q.pushed == 0 {
				moved, progressed = q.execute(r) || moved, true
			}
		}
		if !progressed {
			return moved
		}
	}
	return moved
}

// settle completes the requests whose messages the peer has taken. If the peer claims to have taken what was never
// sent, or takes back what it took, settle ends the connection: otherwise the peer alone would decide whether anything
// ever completes.
func (q *queuePair) settle() (progressed bool) {
	if q.taken == q.written {
		return false
	}
	tail := q.out.tail.Load()
	if tail-q.taken > q.written-q.taken {
		q.fail(fmt.Errorf("shm: the peer took bytes up to %d of a ring, allowed are %d to %d: %w", tail, q.taken, q.written, verbs.StatusRemoteInvalid))
		return false
	}
	q.taken = tail
	for q.pushed > 0 && tail >= q.sends[q.sendFirst].end {
		q.finish(verbs.StatusSuccess)
		progressed = true
	}
	return progressed
}

// finish completes the first request.
func (q *queuePair) finish(status verbs.Status) {
	r := &q.sends[q.sendFirst]
	q.sendFirst = q.after(q.sendFirst)
	q.sendCount--
	if q.pushed > 0 {
		q.pushed--
	}
	q.complete(r, status)
}

// localOK checks the segments against the device's regions.
func (q *queuePair) localOK(r *verbs.SendRequest) bool {
	if r.Flags&verbs.Inline != 0 {
		return true
	}
	var right verbs.Access
	if r.Opcode >= verbs.OpRDMARead {
		right = verbs.LocalWrite
	}
	return q.device.regions.hold(r.Segments, right)
}

// refuseLocal fails a request whose segments are not registered, after everything before it has completed.
func (q *queuePair) refuseLocal() bool {
	if q.pushed > 0 {
		return false
	}
	q.failFirst(verbs.StatusLocalProtection)
	return true
}

// failFirst ends the first request, and with it the connection.
func (q *queuePair) failFirst(status verbs.Status) {
	err := fmt.Errorf("shm: request %d: %w", q.sends[q.sendFirst].ID, status)
	q.finish(status)
	q.fail(err)
}

// pushMessage pushes as much of a message into the ring as fits.
func (q *queuePair) pushMessage(r *request) (moved bool) {
	for {
		n := min(r.length-q.offset, maxChunk)
		f := frame{length: uint32(n), immediate: r.Immediate}
		if q.offset+n == r.length {
			f.flags |= frameLast
		}
		if r.Opcode == verbs.OpSendImmediate {
			f.flags |= frameImmediate
		}
		if ringBytes-(q.written-q.taken) < f.bytes() {
			return moved
		}
		q.pushFrame(&f, r)
		moved = true
		if q.offset += n; f.flags&frameLast != 0 {
			q.markPushed(r)
			return moved
		}
	}
}

func (q *queuePair) markPushed(r *request) {
	r.end = q.written
	q.offset = 0
	q.pushed++
}

// pushFrame writes a frame whose payload is f.length bytes of r from q.offset on.
func (q *queuePair) pushFrame(f *frame, r *request) {
	var header [frameHeader]byte
	f.encode(&header)
	q.out.write(q.written, header[:])
	at := q.written + frameHeader
	skip, left := q.offset, int(f.length)
	for _, s := range r.Segments {
		if skip >= len(s.Memory) {
			skip -= len(s.Memory)
			continue
		}
		part := s.Memory[skip:min(len(s.Memory), skip+left)]
		q.out.write(at, part)
		at += uint64(len(part))
		left -= len(part)
		if skip = 0; left == 0 {
			break
		}
	}
	// The store of head publishes the frame, which is complete.
	q.written += f.bytes()
	q.out.head.Store(q.written)
}

// execute executes a write, read or atomic. Everything before it has taken effect, so the ring is empty and has room
// to announce it. It reports whether it did.
func (q *queuePair) execute(r *request) (moved bool) {
	right, n := verbs.RemoteAtomic, 8
	switch r.Opcode {
	case verbs.OpRDMAWrite, verbs.OpRDMAWriteImmediate:
		right, n = verbs.RemoteWrite, r.length
	case verbs.OpRDMARead:
		right, n = verbs.RemoteRead, r.length
	}
	if status := q.transfer(&r.SendRequest, n, right); status != verbs.StatusSuccess {
		q.failFirst(status)
		return true
	}
	if r.Opcode != verbs.OpRDMAWriteImmediate {
		q.finish(verbs.StatusSuccess)
		return false
	}
	q.pushFrame(&frame{flags: frameLast | frameImmediate | frameWrite, immediate: r.Immediate, written: uint32(r.length)}, r)
	q.markPushed(r)
	return true
}

// wordBytes is the length of a write that is one store if it is aligned.
const wordBytes = 8

func (q *queuePair) transfer(r *verbs.SendRequest, n int, right verbs.Access) verbs.Status {
	if n == 0 {
		return verbs.StatusSuccess
	}
	remote, foreign, status := q.peer.access(r.RemoteAddress, n, r.RKey, right)
	if status != verbs.StatusSuccess {
		return status
	}
	if r.Opcode >= verbs.OpFetchAdd {
		if r.RemoteAddress%8 != 0 {
			return verbs.StatusRemoteInvalid
		}
		if foreign {
			return verbs.StatusRemoteOperation
		}
		word := bounds.Word(remote)
		old := uint64(0)
		if r.Opcode == verbs.OpFetchAdd {
			old = word.Add(r.Operand) - r.Operand
		} else {
			old = compareSwap(word, r.Compare, r.Operand)
		}
		binary.NativeEndian.PutUint64(r.Segments[0].Memory, old)
		return verbs.StatusSuccess
	}
	if n == wordBytes && right == verbs.RemoteWrite && !foreign && bounds.Address(remote)%wordBytes == 0 {
		var word [wordBytes]byte
		into := word[:0]
		for _, s := range r.Segments {
			into = append(into, s.Memory...)
		}
		bounds.Word(remote).Store(binary.NativeEndian.Uint64(word[:]))
		return verbs.StatusSuccess
	}
	done := uint64(0)
	for _, s := range r.Segments {
		var err error
		size := uint64(len(s.Memory))
		switch {
		case foreign && r.Opcode == verbs.OpRDMARead:
			err = q.peer.ReadAt(s.Memory, verbs.RemoteRegion{Address: r.RemoteAddress, Length: uint64(n), RKey: r.RKey}, done)
		case foreign:
			err = q.peer.WriteAt(s.Memory, verbs.RemoteRegion{Address: r.RemoteAddress, Length: uint64(n), RKey: r.RKey}, done)
		case r.Opcode == verbs.OpRDMARead:
			cpucopy.Copy(s.Memory, remote[done:])
		default:
			cpucopy.Copy(remote[done:], s.Memory)
		}
		if err != nil {
			return verbs.StatusRemoteOperation
		}
		done += size
	}
	return verbs.StatusSuccess
}
