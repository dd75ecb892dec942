package tcp

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/onesided/rma/verbs"
)

// PostSend posts requests in order and sends what can be sent.
func (q *queuePair) PostSend(requests []verbs.SendRequest) (int, error) {
	c := q.conn
	c.mu.Lock()
	if q.closed {
		c.mu.Unlock()
		return 0, fmt.Errorf("tcp: PostSend: %w", verbs.ErrClosed)
	}
	n, err := q.postSends(requests)
	if q.err != nil {
		q.flush()
	} else if c.phase == phaseReady && !c.stuck() {
		c.transmit()
	}
	c.mu.Unlock()
	return n, err
}

func (q *queuePair) postSends(requests []verbs.SendRequest) (int, error) {
	for i := range requests {
		length, err := attributes.CheckSend(&requests[i])
		if err != nil {
			return i, err
		}
		if q.sendCount+q.uncovered >= q.maxSends {
			if q.err == nil {
				return i, verbs.ErrQueueFull
			}
			q.flush()
		}
		if q.sendCount == len(q.sends) {
			q.sends, q.sendFirst = grown(q.sends, q.sendFirst, q.maxSends), 0
		}
		r := q.at(q.sendCount)
		if requests[i].Flags&verbs.Inline != 0 && r.inline == nil {
			q.growInline(q.sendFirst + q.sendCount)
		}
		r.take(&requests[i], length)
		q.sendCount++
	}
	return len(requests), nil
}

// at returns the request i places after the first.
func (q *queuePair) at(i int) *request {
	if i += q.sendFirst; i >= len(q.sends) {
		i -= len(q.sends)
	}
	return &q.sends[i]
}

// inlineGroup is the number of requests that get memory for inline data at once.
const inlineGroup = 8

// growInline allocates memory for inline data for a request and those after it that have none.
func (q *queuePair) growInline(at int) {
	group := q.sends[at%len(q.sends):]
	n := 1
	for n < min(len(group), inlineGroup) && group[n].inline == nil {
		n++
	}
	memory := make([]byte, n*maxInline)
	for i := range n {
		group[i].inline = memory[i*maxInline:][:0:maxInline]
	}
}

// take copies a request, whose slices belong to the caller, into the reused slices.
func (r *request) take(from *verbs.SendRequest, length int) {
	segments := append(r.Segments[:0], from.Segments...)
	r.SendRequest = *from
	r.length, r.arrived, r.whole = length, 0, false
	if from.Flags&verbs.Inline != 0 {
		r.inline = r.inline[:0]
		for i := range from.Segments {
			r.inline = append(r.inline, from.Segments[i].Memory...)
		}
		segments = append(segments[:0], verbs.Segment{Memory: r.inline, LKey: reservedLKey})
	}
	r.Segments = segments
}

// kindOf is the kind of each opcode's frames.
var kindOf = [...]kind{
	verbs.OpSend: kindSend, verbs.OpSendImmediate: kindSend,
	verbs.OpRDMAWrite: kindWrite, verbs.OpRDMAWriteImmediate: kindWriteImmediate,
	verbs.OpRDMARead: kindRead, verbs.OpFetchAdd: kindFetchAdd, verbs.OpCompareSwap: kindCompareSwap,
}

// fillRequest adds a frame of the next request to the batch.
func (c *connection) fillRequest() bool {
	q := c.pair
	if q.built == q.sendCount {
		return false
	}
	r := q.at(q.built)
	if q.offset == 0 && !q.mayGo(r) {
		return false
	}
	f := frame{kind: kindOf[r.Opcode], request: q.firstNumber + uint32(q.built), rkey: r.RKey, address: r.RemoteAddress}
	if r.Opcode >= verbs.OpRDMARead {
		f.total, f.operand, f.compare = uint32(r.length), r.Operand, r.Compare
		c.put(&f)
		q.unread[(q.unreadFirst+q.unreadCount)%maxReads] = f.request
		q.unreadCount++
	} else {
		n := min(r.length-q.offset, maxPayload)
		f.length, f.total, f.immediate = uint32(n), uint32(r.length), r.Immediate
		if r.Flags&verbs.Signalled != 0 {
			f.flags |= flagSignalled
		}
		if r.Opcode == verbs.OpSendImmediate {
			f.flags |= flagImmediate
		}
		if f.kind != kindWrite && q.offset == 0 {
			c.requests.sent++
		}
		c.putSegments(&f, r.Segments, q.offset)
		if q.offset += n; q.offset < r.length {
			return true
		}
	}
	q.offset = 0
	q.built++
	c.out.through = f.request
	return true
}

// mayGo reports whether a request may be sent now.
func (q *queuePair) mayGo(r *request) bool {
	n := &q.conn.requests
	var right verbs.Access
	switch {
	case r.Flags&verbs.Fence != 0 && q.unreadCount > 0:
		return false
	case r.Opcode >= verbs.OpRDMARead:
		if q.unreadCount == maxReads {
			return false
		}
		right = verbs.LocalWrite
	case r.Opcode != verbs.OpRDMAWrite && n.sent == n.peerGranted:
		return false
	}
	if q.device.regions.covers(r.Segments, right) {
		return true
	}
	// Earlier requests must complete first. The response to a ping acknowledges them.
	if q.built > 0 {
		if !q.solicited {
			q.solicited, q.conn.out.ping = true, true
			q.conn.fillControl()
		}
		return false
	}
	err := fmt.Errorf("tcp: request %d: %w", r.ID, verbs.StatusLocalProtection)
	q.finish(verbs.StatusLocalProtection)
	q.conn.fail(err, shutdownInOrder)
	return false
}

// settleSends completes the requests that the peer has executed or responded to, in order.
func (q *queuePair) settleSends() {
	for q.built > 0 && q.err == nil {
		r := &q.sends[q.sendFirst]
		if r.Opcode >= verbs.OpRDMARead {
			if !r.whole {
				return
			}
		} else if int32(q.conn.requests.acked-q.firstNumber) < 0 || int32(q.conn.out.left-q.firstNumber) < 0 {
			// Acknowledged, and no longer in a batch that refers to its memory.
			return
		}
		q.finish(verbs.StatusSuccess)
	}
}

// reading returns the read or atomic whose response is the next.
func (q *queuePair) reading() *request {
	return q.at(int(q.unread[q.unreadFirst] - q.firstNumber))
}

// takeResponse processes a frame of a response.
func (c *connection) takeResponse(f *frame) {
	q := c.pair
	if q.unreadCount == 0 || f.request != q.unread[q.unreadFirst] {
		c.violation("%v to request %d, which is not the one that is next", f.kind, f.request)
		return
	}
	r := q.reading()
	if (f.kind == kindReadResponse) != (r.Opcode == verbs.OpRDMARead) {
		c.violation("%v to request %d, which has opcode %d", f.kind, f.request, r.Opcode)
		return
	}
	if f.kind == kindAtomicResponse {
		binary.NativeEndian.PutUint64(r.Segments[0].Memory, f.operand)
		q.responded(r.length)
		return
	}
	if missing := r.length - r.arrived; int(f.length) > missing || f.length == 0 && missing > 0 {
		c.violation("%d bytes of the response to read %d, of which %d of %d are missing", f.length, f.request, missing, r.length)
		return
	}
	c.expect(f, placeResponse, r.arrived)
}

// responded counts the part of the current response that has arrived.
func (q *queuePair) responded(arrived int) {
	r := q.reading()
	if r.arrived = arrived; arrived < r.length {
		return
	}
	r.whole = true
	q.unreadFirst = (q.unreadFirst + 1) % maxReads
	q.unreadCount--
	q.settleSends()
}

// takeRequestRejection ends the connection at the request that the peer did not execute.
func (c *connection) takeRequestRejection(f *frame) {
	q := c.pair
	status := verbs.Status(f.operand)
	c.settleAll()
	if q.sendCount == 0 || f.request != q.firstNumber || q.built == 0 && q.offset == 0 {
		c.violation("request %d rejected while %d outstanding begin at %d", f.request, q.sendCount, q.firstNumber)
		return
	}
	if f.operand > uint64(verbs.StatusFlushed) || status == verbs.StatusSuccess {
		c.violation("request %d rejected with %d", f.request, f.operand)
		return
	}
	err := fmt.Errorf("tcp: %s: request %d: %w", c.peer, q.sends[q.sendFirst].ID, status)
	q.finish(status)
	c.fail(err, shutdownNow)
}

// errWithdrawn is the error of a connection that owes its peer bytes of a deregistered region.
var errWithdrawn = errors.New("tcp: a region was deregistered while a peer read it")
