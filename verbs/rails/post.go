package rails

import (
	"fmt"

	"github.com/onesided/rma/verbs"
)

// PostSend posts requests in order, or holds them back.
func (q *queuePair) PostSend(requests []verbs.SendRequest) (int, error) {
	q.mu.Lock()
	n, err := q.post(requests)
	q.mu.Unlock()
	q.sever()
	return n, err
}

func (q *queuePair) post(requests []verbs.SendRequest) (n int, err error) {
	if q.closed {
		return 0, fmt.Errorf("rails: PostSend: %w", verbs.ErrClosed)
	}
	q.lookForFailure()
	for i := range requests {
		r := &requests[i]
		length, err := q.device.attributes.CheckSend(r)
		if err == nil && q.count == len(q.records) {
			err = verbs.ErrQueueFull
		}
		if err != nil {
			// The error of an earlier request comes first.
			if left, earlier := q.flush(); earlier != nil {
				return i - left, earlier
			}
			return i, err
		}
		k := q.stripes(r, length, q.count)
		if q.deferred.count == 0 && (k != nil || !q.waits()) {
			q.record(r, length)
			q.launch(r, q.count-1, k)
			continue
		}
		if left, err := q.flush(); err != nil {
			return i - left, err
		}
		q.record(r, length)
		q.deferred.add(r)
	}
	left, err := q.flush()
	return len(requests) - left, err
}

// lookForFailure records the failure of a rail that no completion has reported yet.
func (q *queuePair) lookForFailure() {
	if q.failed.Load() {
		return
	}
	for rail, pair := range q.pairs[1:] {
		if pair.State() == verbs.StateError {
			q.recordFailure(q.causeOf(rail+1, verbs.StatusFlushed))
			return
		}
	}
}

// record appends a request to the records.
func (q *queuePair) record(r *verbs.SendRequest, length int) {
	*q.entry(q.count) = record{id: r.ID, address: r.RemoteAddress, length: length, opcode: r.Opcode, flags: r.Flags}
	q.count++
	q.next = (q.next + 1) & numberMask
	q.backlog += q.device.division.burden(length)
}

// entry returns the i-th outstanding request.
func (q *queuePair) entry(i int) *record {
	i += q.at
	if i >= len(q.records) {
		i -= len(q.records)
	}
	return &q.records[i]
}

// id returns the ID of the i-th request on the rails.
func (q *queuePair) id(i int) uint64 {
	return uint64(q.place)<<32 | partKind | uint64((q.next-uint32(q.count-i))&numberMask)
}

// waits reports whether a request over rail 0 alone has to wait for parts on other rails.
func (q *queuePair) waits() bool { return q.onOthers > 0 || q.spread }

// launch adds the i-th request to ready: all of it for rail 0, or, if k is not nil, a part for each rail.
func (q *queuePair) launch(r *verbs.SendRequest, i int, k *known) {
	d, e := q.device, q.entry(i)
	q.ready[0] = append(q.ready[0], *r)
	first := &q.ready[0][len(q.ready[0])-1]
	first.ID = q.id(i)
	if k == nil {
		return
	}
	e.striped, q.spread = true, true
	from := d.division.end(0, e.address, e.length)
	first.Segments = q.part(r, 0, 0, from)
	for rail := 1; rail < len(d.rails); rail++ {
		until := d.division.end(rail, e.address, e.length)
		if until <= from {
			continue
		}
		place := &k.places[rail-1]
		q.ready[rail] = append(q.ready[rail], verbs.SendRequest{ID: q.id(i), Opcode: r.Opcode, Flags: verbs.Signalled, Segments: q.part(r, rail, from, until),
			RemoteAddress: place.address + (e.address - k.address) + uint64(from), RKey: place.key})
		from = until
	}
}

// part returns the segments of a part of a request for a rail. They are valid until ready is posted.
func (q *queuePair) part(r *verbs.SendRequest, rail, from, until int) []verbs.Segment {
	n := len(q.segments)
	q.segments = q.device.part(q.segments, r.Segments, from, until, rail)
	return q.segments[n:]
}

// send posts ready, until the last of the first count requests. It returns how many of those rail 0 has not taken:
// their parts on other rails are not posted.
func (q *queuePair) send(count int) (left int, err error) {
	if len(q.ready[0]) == 0 {
		return 0, nil
	}
	n, err := q.pairs[0].PostSend(q.ready[0])
	left = len(q.ready[0]) - n
	for rail := 1; q.spread && rail < len(q.ready); rail++ {
		q.sendParts(rail, count-left)
	}
	for rail, posted := range q.ready {
		clear(posted)
		q.ready[rail] = posted[:0]
	}
	clear(q.segments)
	q.segments, q.spread = q.segments[:0], false
	return left, of(0, err)
}

// sendParts posts the ready requests for a rail after the first that belong to the first count requests.
func (q *queuePair) sendParts(rail, count int) {
	parts := q.ready[rail]
	for len(parts) > 0 {
		if i, _ := q.index(parts[len(parts)-1].ID); i < count {
			break
		}
		parts = parts[:len(parts)-1]
	}
	if len(parts) == 0 {
		return
	}
	n, err := q.pairs[rail].PostSend(parts)
	for k := range parts {
		i, _ := q.index(parts[k].ID)
		if e := q.entry(i); k < n {
			e.parts++
		} else {
			e.worse(verbs.StatusFlushed)
		}
	}
	q.onOthers += n
	q.device.onOthers.Add(int64(n))
	q.recordFailureIf(of(rail, err))
}

// flush is send for PostSend. It drops the requests that rail 0 has not taken.
func (q *queuePair) flush() (left int, err error) {
	left, err = q.send(q.count)
	for i := range left {
		q.backlog -= q.device.division.burden(q.entry(q.count - 1 - i).length)
	}
	q.count -= left
	q.next = (q.next - uint32(left)) & numberMask
	return left, err
}

// stripes returns the keys by which a request is striped, or nil if it goes over rail 0 alone. The first earlier
// outstanding requests were posted before it.
func (q *queuePair) stripes(r *verbs.SendRequest, length, earlier int) *known {
	d := q.device
	least := d.division.least
	if least < 0 || length < d.division.each || r.Opcode != verbs.OpRDMAWrite && r.Opcode != verbs.OpRDMARead || r.Flags&verbs.Inline != 0 || q.failed.Load() {
		return nil
	}
	// A request that would wait on rail 0 is striped in any case: those after it wait anyway.
	if q.backlog+length < least && !q.waits() {
		return nil
	}
	k := q.keys.find(q, r, length)
	if k == nil || q.needsFirstRail(r, length, earlier) {
		return nil
	}
	var right verbs.Access
	if r.Opcode == verbs.OpRDMARead {
		right = verbs.LocalWrite
	}
	if !d.covers(r.Segments, right) {
		return nil
	}
	return k
}

// needsFirstRail reports whether a long request has to go over rail 0, after what is outstanding there.
func (q *queuePair) needsFirstRail(r *verbs.SendRequest, length, earlier int) bool {
	for i := range earlier {
		e := q.entry(i)
		reads := e.opcode >= verbs.OpRDMARead
		if reads && r.Flags&verbs.Fence != 0 {
			return true
		}
		if e.opcode == verbs.OpSend || e.opcode == verbs.OpSendImmediate || e.opcode == verbs.OpRDMARead && r.Opcode == verbs.OpRDMARead {
			continue
		}
		same := e.striped && e.address == r.RemoteAddress && e.length == length
		// A range that wraps is not within a region, and its request fails in any case.
		if !same && e.address < r.RemoteAddress+uint64(length) && r.RemoteAddress < e.address+uint64(e.length) {
			return true
		}
	}
	return false
}

// release posts the deferred requests that can go now.
func (q *queuePair) release() {
	taken, first := 0, q.count-q.deferred.count
	for ; taken < q.deferred.count; taken++ {
		i := first + taken
		r := q.deferred.nth(taken)
		k := q.stripes(r, q.entry(i).length, i)
		if k == nil && q.waits() {
			break
		}
		q.launch(r, i, k)
	}
	if taken == 0 {
		return
	}
	left, err := q.send(first + taken)
	q.deferred.drop(taken)
	if err == nil {
		return
	}
	// PostSend has returned for these. A completion reports the failure of those that rail 0 did not take.
	q.recordFailure(err)
	for i := first + taken - left; i < first+taken; i++ {
		e := q.entry(i)
		e.refused = true
		e.worse(verbs.StatusRemoteInvalid)
	}
}
