package sim

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/onesided/rma/internal/bounds"
	"github.com/onesided/rma/verbs"
)

// arrive takes a piece of q's requests from the wire, at the peer.
func (q *queuePair) arrive(e *event) {
	d := q.peer.device
	if d.dead {
		return
	}
	p := &d.sim.profile
	first, at := d.take(e.bytes, e.until)
	r := q.sought(e)
	q.peer.reportReceived(r, e, first)
	at += p.Place
	if r != nil && e.last && (r.Opcode <= verbs.OpSendImmediate || r.Opcode == verbs.OpRDMAWriteImmediate) {
		at += p.Receive
	}
	// While the card looks for a receive, later pieces wait.
	at = max(at, q.placedAt)
	q.placedAt = at
	next := d.sim.schedule(at, q.lane, evPlaced)
	next.pair, next.number, next.offset, next.bytes, next.last, next.epoch = q, e.number, e.offset, e.bytes, e.last, e.epoch
}

// placed executes a piece of q's requests at the peer. A piece that either end does not want any more is dropped.
func (q *queuePair) placed(e *event) {
	to := q.peer
	r := q.sought(e)
	if r == nil || to.state != verbs.StateReady || to.rejected {
		return
	}
	d := to.device
	p := &d.sim.profile
	status, found := r.status, true
	if status == verbs.StatusSuccess {
		switch r.Opcode {
		case verbs.OpSend, verbs.OpSendImmediate:
			status, found = to.deliver(r, e)
		case verbs.OpRDMAWrite, verbs.OpRDMAWriteImmediate:
			status, found = to.write(r, e)
		default:
			status = to.owe(r, e.number)
		}
	}
	if now := d.sim.now; !r.brings() && (!d.sim.faulty || now >= d.faultsOut.until && now >= q.device.faultsIn.until) {
		q.progress = now + p.back()
	}
	switch {
	case !found && d.exhausting > 0:
		to.exhaust(e.number)
	case !found:
		q.starve(e.number)
	case status != verbs.StatusSuccess:
		to.rejected = true
		q.inform(e.number, status)
		if to.fault != nil {
			to.fail(to.fault)
		}
	case e.last && !r.brings():
		r.executed, r.known = true, d.leaves(d.sim.now)
		if r.known < forever {
			r.known += p.Acknowledge
		}
		if r.Flags&verbs.Signalled != 0 {
			q.inform(e.number, status)
		}
	}
}

// sought returns the request of an arriving piece, or nil if q has failed, or has begun to send it again.
func (q *queuePair) sought(e *event) *request {
	if q.state != verbs.StateReady || e.epoch != q.epoch {
		return nil
	}
	return q.request(e.number)
}

// inform notifies q of how a request ended.
func (q *queuePair) inform(number uint64, status verbs.Status) {
	s := q.device.sim
	if arrives := q.peer.device.leaves(s.now); arrives < forever {
		e := s.schedule(arrives+s.profile.Acknowledge, q.peer.lane, evAcknowledged)
		e.pair, e.number, e.status = q, number, uint8(status)
	}
}

// write places a piece of a write of the peer. A write with immediate data takes a receive after its last piece.
func (q *queuePair) write(r *request, e *event) (status verbs.Status, found bool) {
	if r.length > 0 {
		memory := q.device.regions.reach(r.RemoteAddress, r.length, r.RKey, verbs.RemoteWrite)
		if memory == nil {
			return verbs.StatusRemoteAccess, true
		}
		if r.length == wordBytes && bounds.Address(memory)%wordBytes == 0 {
			var word [wordBytes]byte
			gather(word[:], r.Segments, 0)
			bounds.Word(memory).Store(binary.NativeEndian.Uint64(word[:]))
		} else {
			gather(memory[e.offset:e.offset+e.bytes], r.Segments, e.offset)
		}
	}
	if !e.last {
		return verbs.StatusSuccess, true
	}
	if r.Opcode == verbs.OpRDMAWrite {
		q.reportPlaced(r)
		q.device.channel.wake()
		return verbs.StatusSuccess, true
	}
	if !q.hasReceive() {
		return verbs.StatusSuccess, false
	}
	q.reportPlaced(r)
	q.received(verbs.StatusSuccess, verbs.OpReceiveImmediate, r.length, r.Immediate)
	return verbs.StatusSuccess, true
}

// deliver places a piece of a message in the first receive.
func (q *queuePair) deliver(r *request, e *event) (status verbs.Status, found bool) {
	if e.offset == 0 {
		if !q.hasReceive() {
			return verbs.StatusSuccess, false
		}
		into := q.receives.at(0)
		if !q.device.regions.hold(into.segments, verbs.LocalWrite) {
			return q.reject(verbs.StatusLocalProtection, verbs.StatusRemoteOperation), true
		}
		if r.length > into.length {
			return q.reject(verbs.StatusLocalLength, verbs.StatusRemoteInvalid), true
		}
	}
	into := q.receives.at(0)
	transfer(into.segments, r.Segments, e.offset, e.bytes)
	if e.last {
		q.reportPlaced(r)
		opcode, immediate := verbs.OpReceive, uint32(0)
		if r.Opcode == verbs.OpSendImmediate {
			opcode, immediate = verbs.OpReceiveImmediate, r.Immediate
		}
		q.received(verbs.StatusSuccess, opcode, r.length, immediate)
	}
	return verbs.StatusSuccess, true
}

// hasReceive reports whether the card finds a receive.
func (q *queuePair) hasReceive() bool {
	if d := q.device; d.exhausting > 0 || d.starving > 0 {
		d.starving = max(d.starving-1, 0)
		return false
	}
	return q.receives.count > 0 && q.receives.at(0).ready <= q.device.sim.now
}

// reject ends a message, its receive and soon this side. It returns the status for the sender.
func (q *queuePair) reject(here, there verbs.Status) verbs.Status {
	q.fault = fmt.Errorf("sim: message from %s: %w", q.peer.device.address, here)
	q.received(here, verbs.OpReceive, 0, 0)
	return there
}

// owe takes a read or an atomic of the peer, to be responded to in order.
func (q *queuePair) owe(r *request, number uint64) verbs.Status {
	if _, status := q.remoteMemory(r); status != verbs.StatusSuccess {
		return status
	}
	p := &q.device.sim.profile
	turn := p.TurnRead
	if r.Opcode != verbs.OpRDMARead {
		turn = p.TurnAtomic
	}
	*q.responses.extend() = response{number: number, ready: q.device.sim.now + turn}
	q.armResponses()
	return verbs.StatusSuccess
}

// remoteMemory returns the memory for a read or an atomic of the peer.
func (q *queuePair) remoteMemory(r *request) ([]byte, verbs.Status) {
	right := verbs.RemoteAtomic
	if r.Opcode == verbs.OpRDMARead {
		if right = verbs.RemoteRead; r.length == 0 {
			return nil, verbs.StatusSuccess
		}
	}
	memory := q.device.regions.reach(r.RemoteAddress, r.length, r.RKey, right)
	switch {
	case memory == nil:
		return nil, verbs.StatusRemoteAccess
	case right == verbs.RemoteAtomic && bounds.Address(memory)%8 != 0:
		return nil, verbs.StatusRemoteInvalid
	}
	return memory, verbs.StatusSuccess
}

// armResponses makes the first response leave as soon as it can.
func (q *queuePair) armResponses() {
	if q.responses.count == 0 || q.responseQueued {
		return
	}
	s := q.device.sim
	if ready := q.responses.at(0).ready; ready <= s.now {
		q.responseQueued = true
		q.device.offer(flow{pair: q, response: true})
	} else if !q.responseArmed {
		q.responseArmed = true
		s.schedule(ready, q.lane, evResponse).pair = q
	}
}

// sendResponse puts a burst of the first response on the wire. The bytes are taken from this side's memory now. The
// requester's segments belong to the device until the response has arrived, so they may be filled at once.
func (q *queuePair) sendResponse() {
	q.responseQueued = false
	if q.state != verbs.StateReady || q.peer.state != verbs.StateReady || q.responses.count == 0 {
		return
	}
	s := q.device.sim
	p := &s.profile
	number := q.responses.at(0).number
	r := q.peer.request(number)
	memory, status := q.remoteMemory(r)
	if status != verbs.StatusSuccess {
		q.rejected = true
		q.responses.drop(q.responses.count)
		q.peer.inform(number, status)
		return
	}
	n := r.length
	if r.Opcode == verbs.OpRDMARead {
		n = min(p.Burst, r.length-q.responded)
		scatter(r.Segments, q.responded, memory[q.responded:q.responded+n])
	} else {
		binary.NativeEndian.PutUint64(r.Segments[0].Memory, swap(memory, r))
	}
	offset := q.responded
	last := offset+n == r.length
	var gap time.Duration
	if q.responded += n; last {
		gap = p.Gap
		q.device.out.frames++
		q.responded = 0
		q.responses.drop(1)
	}
	from, until := q.device.transmit(n, gap)
	if s.trace != nil {
		q.report(Event{Kind: Sent, At: from, Until: until, Opcode: r.Opcode, Request: r.ID, Response: true, Offset: offset, Bytes: n})
	}
	if arrives := q.device.leaves(from); arrives < forever {
		e := s.schedule(arrives, q.lane, evReturn)
		e.pair, e.number, e.offset, e.bytes, e.last, e.until = q.peer, number, offset, n, last, arrives+until-from
	}
	q.armResponses()
}

// wordBytes is the length that is placed at once if it is aligned.
const wordBytes = 8

// swap executes an atomic on a word and returns the old value.
func swap(memory []byte, r *request) (old uint64) {
	word := bounds.Word(memory)
	if r.Opcode == verbs.OpFetchAdd {
		return word.Add(r.Operand) - r.Operand
	}
	for {
		old = word.Load()
		if old != r.Compare || word.CompareAndSwap(old, r.Operand) {
			return old
		}
	}
}

// arriveBack takes a piece of a response from the wire.
func (q *queuePair) arriveBack(e *event) {
	s := q.device.sim
	first, at := q.device.take(e.bytes, e.until)
	if q.state != verbs.StateReady {
		return
	}
	q.progress = s.now
	q.reportReceived(q.request(e.number), e, first)
	if e.last {
		next := s.schedule(at+s.profile.Return, q.peer.lane, evReturned)
		next.pair, next.number = q, e.number
	}
}

// returned ends a read or an atomic.
func (q *queuePair) returned(e *event) {
	if q.state != verbs.StateReady {
		return
	}
	r := q.request(e.number)
	r.done = true
	q.reads--
	q.learn(e.number)
	q.arm()
}
