package tcp

import (
	"encoding/binary"
	"fmt"

	"github.com/onesided/rma/internal/bounds"
	"github.com/onesided/rma/verbs"
)

// responses are the pending responses to the peer's reads and atomics, in order. Atomics have been executed; a read is
// read when its response leaves.
type responses struct {
	// queue is a ring of count entries from first on.
	queue []pendingResponse
	first int
	count int
	// atomics is the number of atomics among them.
	atomics int
}

// A pendingResponse is the response to a read or an atomic. done bytes of total are in batches.
type pendingResponse struct {
	kind    kind
	request uint32
	rkey    uint32
	total   int
	done    int
	address uint64
	// old is the value before an atomic.
	old uint64
}

func (r *responses) push(next pendingResponse) {
	if r.count == len(r.queue) {
		r.queue, r.first = grown(r.queue, r.first, maxReads), 0
	}
	r.count++
	*r.at(r.count - 1) = next
}

// at returns the response i places after the first.
func (r *responses) at(i int) *pendingResponse {
	if i += r.first; i >= len(r.queue) {
		i -= len(r.queue)
	}
	return &r.queue[i]
}

func (r *responses) pop() {
	if r.first++; r.first == len(r.queue) {
		r.first = 0
	}
	r.count--
}

func (r *responses) clear() { *r = responses{} }

// takeMessage begins or continues a send or a write.
func (c *connection) takeMessage(f *frame) {
	in := &c.in
	if in.open {
		m := &in.message
		if f.kind != m.kind || f.request != m.request || f.flags != m.flags || f.total != m.total || f.immediate != m.immediate || f.rkey != m.rkey || f.address != m.address {
			c.violation("%v %d in the middle of %v %d", f.kind, f.request, m.kind, m.request)
			return
		}
	} else if !c.beginMessage(f) {
		return
	}
	total := int(f.total)
	if int(f.length) > total-in.done || f.length == 0 && total > 0 {
		c.violation("%d bytes of %v %d, of which %d of %d are missing", f.length, f.kind, f.request, total-in.done, total)
		return
	}
	to := placeRegion
	if f.kind == kindSend {
		to = placeReceive
	}
	c.expect(f, to, in.done)
}

// inTurn checks the number of a request's first frame.
func (c *connection) inTurn(f *frame) bool {
	if c.in.open || f.request != c.in.begun+1 {
		c.violation("%v %d after request %d, complete: %v", f.kind, f.request, c.in.begun, !c.in.open)
		return false
	}
	c.in.begun++
	return true
}

// beginMessage makes all checks of a send or write before its first byte.
func (c *connection) beginMessage(f *frame) bool {
	in, n := &c.in, &c.requests
	if !c.inTurn(f) {
		return false
	}
	if f.total > maxMessage {
		c.violation("%v %d of %d bytes, at most %d are allowed", f.kind, f.request, f.total, maxMessage)
		return false
	}
	if f.kind != kindWrite {
		if n.consumed == n.announced {
			c.violation("%v %d for which no receive was granted", f.kind, f.request)
			return false
		}
		n.consumed++
	}
	if f.kind == kindSend {
		if !c.receivable(f) {
			return false
		}
	} else if f.total > 0 {
		in.region = c.device.regions.reach(f.rkey, f.address, int(f.total), verbs.RemoteWrite)
		if in.region == nil {
			c.rejectRequest(f.request, verbs.StatusRemoteAccess)
			return false
		}
	}
	in.message, in.open, in.done = *f, true, 0
	return true
}

// receivable reports whether the message fits the next receive.
func (c *connection) receivable(f *frame) bool {
	r := &c.pair.receives[c.pair.receiveFirst]
	switch {
	case !c.device.regions.covers(r.segments, verbs.LocalWrite):
		c.pair.received(verbs.StatusLocalProtection, verbs.OpReceive, 0, 0)
		c.rejectRequest(f.request, verbs.StatusRemoteOperation)
	case int(f.total) > r.length:
		c.pair.received(verbs.StatusLocalLength, verbs.OpReceive, 0, 0)
		c.rejectRequest(f.request, verbs.StatusRemoteInvalid)
	default:
		return true
	}
	return false
}

// messagePlaced counts a frame of a message, and completes the request if it was the last.
func (c *connection) messagePlaced() {
	in := &c.in
	m := &in.message
	in.done = in.offset
	if in.done < int(m.total) {
		return
	}
	in.open, in.region = false, nil
	in.carried = m.request
	c.out.written = c.out.written || m.kind != kindSend
	if m.flags&flagSignalled != 0 {
		c.out.acknowledge = true
		if m.kind != kindSend {
			c.device.served.Add(1)
		}
		// A message is likely to have a response. A write has none, and a peer that waits for it may have signalled only
		// the message after it.
		if !c.out.written && c.device.options.has(DelayedAcknowledgements) {
			c.delayAcknowledgement()
		} else {
			c.endDelay()
		}
	}
	opcode := verbs.OpReceive
	if m.kind == kindWriteImmediate || m.flags&flagImmediate != 0 {
		opcode = verbs.OpReceiveImmediate
	}
	if m.kind != kindWrite {
		c.pair.received(verbs.StatusSuccess, opcode, m.total, m.immediate)
	}
}

// takeReadOrAtomic takes a read or an atomic.
func (c *connection) takeReadOrAtomic(f *frame) {
	if !c.inTurn(f) {
		return
	}
	pending := &c.responses
	if pending.count == maxReads {
		c.violation("%v %d while %d reads and atomics are unanswered, which is the most", f.kind, f.request, maxReads)
		return
	}
	total, right := 8, verbs.RemoteAtomic
	if f.kind == kindRead {
		if f.total > maxMessage {
			c.violation("read %d of %d bytes, at most %d are allowed", f.request, f.total, maxMessage)
			return
		}
		total, right = int(f.total), verbs.RemoteRead
	}
	switch {
	case total > 0 && c.device.regions.reach(f.rkey, f.address, total, right) == nil:
		c.rejectRequest(f.request, verbs.StatusRemoteAccess)
		return
	case f.kind != kindRead && f.address%8 != 0:
		c.rejectRequest(f.request, verbs.StatusRemoteInvalid)
		return
	}
	if f.kind != kindRead && c.out.loan != nil && !c.detach() {
		// The rest of the batch is of memory that the atomic may change.
		c.fail(errWithdrawn, shutdownNow)
		return
	}
	next := pendingResponse{kind: f.kind, request: f.request, rkey: f.rkey, total: total, address: f.address}
	if f.kind != kindRead {
		var ok bool
		if next.old, ok = c.execute(f); !ok {
			c.rejectRequest(f.request, verbs.StatusRemoteAccess)
			return
		}
		pending.atomics++
	}
	c.in.carried = f.request
	c.device.served.Add(1)
	pending.push(next)
}

// execute executes an atomic and returns the old value. ok is false if the region has ended.
func (c *connection) execute(f *frame) (old uint64, ok bool) {
	r := c.device.regions.reach(f.rkey, f.address, 8, verbs.RemoteAtomic)
	if r == nil {
		return 0, false
	}
	memory, ok := r.hold(f.address, 8)
	if !ok {
		return 0, false
	}
	defer r.release()
	word := bounds.Word(memory)
	if f.kind == kindFetchAdd {
		return word.Add(f.operand) - f.operand, true
	}
	for {
		old := word.Load()
		if old != f.compare || word.CompareAndSwap(old, f.operand) {
			return old, true
		}
	}
}

// unchanged returns how many of the n bytes at address, which the first of the responses reads, no later atomic has
// changed. If one has changed the first bytes, it returns those of its word before the change. So reads and atomics are
// ordered, although atomics are executed as they arrive.
func (r *responses) unchanged(address uint64, n int) (int, []byte) {
	if r.atomics == 0 {
		return n, nil
	}
	for i := 1; i < r.count; i++ {
		atomic := r.at(i)
		if atomic.kind == kindRead {
			continue
		}
		if at := address - atomic.address; at < 8 {
			// The first such atomic has the value that the read should return.
			var word [8]byte
			binary.NativeEndian.PutUint64(word[:], atomic.old)
			old := word[at:min(8, int(at)+n)]
			return len(old), old
		}
		if ahead := atomic.address - address; ahead < uint64(n) {
			n = int(ahead)
		}
	}
	return n, nil
}

// fillResponse adds a frame of the next response to the batch.
func (c *connection) fillResponse() bool {
	pending := &c.responses
	if pending.count == 0 {
		return false
	}
	next := pending.at(0)
	if next.kind != kindRead {
		c.put(&frame{kind: kindAtomicResponse, request: next.request, operand: next.old})
		pending.atomics--
		pending.pop()
		return true
	}
	n, old := pending.unchanged(next.address, min(next.total-next.done, maxPayload))
	f := frame{kind: kindReadResponse, request: next.request, length: uint32(n)}
	if n == 0 {
		c.put(&f)
	} else {
		r := c.device.regions.reach(next.rkey, next.address, n, verbs.RemoteRead)
		if r != nil && c.out.loan != nil && c.out.loan != r {
			// A batch borrows only one region: two connections that each hold one and wait for another could deadlock.
			return false
		}
		if r == nil || !c.putRegion(&f, r, next.address, old) {
			c.withdraw(next.request)
			return false
		}
	}
	next.address += uint64(n)
	if next.done += n; next.done == next.total {
		pending.pop()
	}
	return true
}

// rejectRequest tells the peer that a request was not executed, after the responses to earlier requests, and ends the
// connection.
func (c *connection) rejectRequest(request uint32, status verbs.Status) {
	c.out.requestRejected, c.out.requestRejection = true, frame{kind: kindRequestRejection, request: request, operand: uint64(status)}
	c.fail(fmt.Errorf("tcp: %s: its request %d was rejected: %w", c.peer, request, status), shutdownInOrder)
}

// withdraw rejects the request whose response is the next.
func (c *connection) withdraw(request uint32) {
	c.responses.clear()
	if c.out.requestRejected {
		// A later request was rejected before; this one replaces it.
		c.out.requestRejection.request, c.out.requestRejection.operand = request, uint64(verbs.StatusRemoteAccess)
		return
	}
	c.rejectRequest(request, verbs.StatusRemoteAccess)
}
