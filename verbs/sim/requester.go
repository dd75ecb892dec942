package sim

import (
	"fmt"
	"time"

	"github.com/onesided/rma/verbs"
)

// further returns the number of segments beyond the first.
func further(segments []verbs.Segment) time.Duration {
	return time.Duration(max(len(segments)-1, 0))
}

// arm makes the next request of the send queue leave as soon as it can.
func (q *queuePair) arm() {
	if q.state != verbs.StateReady || q.parked || q.stopped || q.queued || q.next-q.first >= uint64(q.sends.count) {
		return
	}
	r := q.request(q.next)
	s := q.device.sim
	switch {
	case max(r.ready, q.open) > s.now:
		if !q.armed {
			q.armed = true
			s.schedule(max(r.ready, q.open), q.lane, evLaunch).pair = q
		}
	case q.reads > 0 && (r.Flags&verbs.Fence != 0 || r.brings() && q.reads >= s.profile.MaxReads):
		// The end of a read checks again.
	default:
		q.queued = true
		q.device.offer(flow{pair: q})
	}
}

// sendPiece puts a burst of the next request on the wire. A request whose segments are not registered travels without
// data, so that it fails in its turn.
func (q *queuePair) sendPiece() {
	q.queued = false
	if q.state != verbs.StateReady || q.parked {
		return
	}
	s := q.device.sim
	p := &s.profile
	r := q.request(q.next)
	if q.offset == 0 && !q.localOK(r) {
		r.status, q.stopped = verbs.StatusLocalProtection, true
	}
	n, last := 0, true
	if !r.brings() && r.status == verbs.StatusSuccess {
		n = min(p.Burst, r.length-q.offset)
		last = q.offset+n == r.length
	}
	var gap time.Duration
	if last {
		gap = p.Gap
		if !r.brings() && r.Flags&verbs.Inline == 0 {
			gap += p.GapSegment * further(r.Segments)
		}
		q.device.out.frames++
	}
	from, until := q.device.transmit(n, gap)
	if s.trace != nil {
		q.report(Event{Kind: Sent, At: from, Until: until, Opcode: r.Opcode, Request: r.ID, Offset: q.offset, Bytes: n})
	}
	if q.offset == 0 {
		r.sent = from
	}
	if arrives := q.device.leaves(from); arrives < forever {
		e := s.schedule(arrives, q.lane, evArrive)
		e.pair, e.number, e.offset, e.bytes, e.last, e.epoch, e.until = q, q.next, q.offset, n, last, q.epoch, arrives+until-from
	}
	q.offset += n
	if last {
		q.next++
		q.offset = 0
		if r.brings() {
			q.reads++
		}
	}
	q.arm()
}

// localOK checks the segments against the device's regions.
func (q *queuePair) localOK(r *request) bool {
	if r.Flags&verbs.Inline != 0 {
		return true
	}
	var right verbs.Access
	if r.brings() {
		right = verbs.LocalWrite
	}
	return q.device.regions.hold(r.Segments, right)
}

// acknowledged processes the report of how a request ended.
func (q *queuePair) acknowledged(e *event) {
	if q.state != verbs.StateReady {
		return
	}
	q.progress = q.device.sim.now
	if status := verbs.Status(e.status); status != verbs.StatusSuccess {
		r := q.request(e.number)
		r.status, r.done = status, true
	}
	q.learn(e.number)
}

// learn completes what has ended, after the request of a number has been answered. That includes earlier requests
// without data, because the responder executes requests in order.
func (q *queuePair) learn(number uint64) {
	q.known = max(q.known, number+1)
	for q.state == verbs.StateReady && q.cleared < q.sends.count {
		r := q.sends.at(q.cleared)
		if !r.done && (r.brings() || q.first+uint64(q.cleared) >= q.known) {
			return
		}
		q.cleared++
		if r.status != verbs.StatusSuccess {
			err := fmt.Errorf("sim: request %d to %s: %w", r.ID, q.peer.device.address, r.status)
			q.complete(r, r.status)
			q.fail(err)
			return
		}
		if r.Flags&verbs.Signalled != 0 {
			q.complete(r, verbs.StatusSuccess)
			if q.state == verbs.StateReady {
				q.forget(q.cleared)
			}
		}
	}
}

// starve makes the sender wait because the peer has no receive for the request of a number. What follows it on the wire
// is lost, and will be sent again.
func (q *queuePair) starve(number uint64) {
	for n := number; n < q.next; n++ {
		if q.request(n).brings() {
			q.reads--
		}
	}
	q.epoch++
	q.next, q.offset = number, 0
	q.parked, q.parkedAt = true, q.device.sim.now
	q.report(Event{Kind: Starved, At: q.parkedAt, Until: q.parkedAt, Opcode: q.request(number).Opcode, Request: q.request(number).ID})
	q.unpark()
}

// unpark schedules when a waiting sender tries again, if the peer has a receive by now. The sender tries periodically.
// Tries that would find no receive are left out, so that waiting for what never comes generates no events.
func (q *queuePair) unpark() {
	if !q.parked || q.peer.receives.count == 0 {
		return
	}
	s := q.device.sim
	again := q.peer.receives.at(0).ready
	if period := s.profile.starved(); period > 0 {
		tries := max((again-q.parkedAt+period-1)/period, 1)
		again = q.parkedAt + tries*period
	}
	e := s.schedule(again, q.lane, evResume)
	e.pair, e.epoch = q, q.epoch
}

// resume tries again, unless that has happened.
func (q *queuePair) resume(epoch uint32) {
	if q.parked && q.epoch == epoch {
		q.parked = false
		q.arm()
	}
}
