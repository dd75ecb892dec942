package sim

import (
	"time"

	"github.com/onesided/rma/verbs"
)

// linkFaults are the effect of the faults of one direction of a link.
type linkFaults struct {
	// until is when the direction's stall ends, forever if never.
	until time.Duration
	// delays are the delays that may not be over.
	delays []delay
	// horizon is when the last affected event passed: nothing overtakes it.
	horizon time.Duration
}

// A delay makes what passes before end arrive later by by.
type delay struct{ by, end time.Duration }

// late returns by how much what passes at a time is delayed: by the longest of the delays.
func (h *linkFaults) late(at time.Duration) (by time.Duration) {
	for _, d := range h.delays {
		if at < d.end {
			by = max(by, d.by)
		}
	}
	return by
}

// pass returns when an event passes that would pass at a time, forever if never.
func (h *linkFaults) pass(at time.Duration) time.Duration {
	passes := max(at, h.until)
	if passes == forever {
		return forever
	}
	passes += h.late(at)
	passes = max(passes, h.horizon)
	if passes > at {
		h.horizon = passes
	}
	return passes
}

// affects reports whether what passes now is affected.
func (h *linkFaults) affects(now time.Duration) bool {
	return now < h.until || now < h.horizon || h.late(now) > 0
}

// leaves returns when an event that is at this card's output at a time is at another card's input, forever if never.
func (d *Device) leaves(at time.Duration) time.Duration {
	s := d.sim
	if !s.faulty {
		return at + s.profile.Wire
	}
	if d.dead {
		return forever
	}
	at = d.faultsOut.pass(at)
	if at < forever {
		at += s.profile.Wire
	}
	return at
}

// held is an event that waits before a card's input.
type held struct {
	due   time.Duration
	event event
}

// hold keeps an event at the card's input from happening while a fault affects it, and reports whether it does.
func (d *Device) hold(e *event) bool {
	if !d.sim.faulty || d.releasing {
		return false
	}
	now := d.sim.now
	due := d.faultsIn.pass(now)
	switch {
	case due == now && d.held.count == 0:
		return false
	case due == forever:
		e.lose()
	default:
		*d.held.extend() = held{due, *e}
		d.sim.schedule(due, d.lane, evRelease).what = d
	}
	return true
}

// release lets in what has waited longest. There is an event for each that waits. In a further fault they wait for its
// end.
func (d *Device) release() {
	first := d.held.at(0)
	if until := d.faultsIn.until; until > d.sim.now && until < forever {
		d.faultsIn.horizon = max(d.faultsIn.horizon, until)
		d.sim.schedule(until, d.lane, evRelease).what = d
		return
	}
	e := first.event
	*first = held{}
	d.held.drop(1)
	if d.faultsIn.until == forever {
		e.lose()
		return
	}
	d.releasing = true
	d.sim.happen(&e)
	d.releasing = false
}

// lose makes the queue pairs concerned detect in time that an event is lost on the wire.
func (e *event) lose() {
	switch e.kind {
	case evConnect:
		e.what.(*connectionRequest).from.ignore()
	case evAccepted, evRejected:
		e.pair.ignore()
	default:
		e.pair.guard()
	}
}

// obstructed reports whether something keeps responses from arriving or leaving.
func (d *Device) obstructed() bool {
	return d.dead || d.faultsOut.affects(d.sim.now) || d.faultsIn.affects(d.sim.now)
}

// obstructed reports whether a fault may keep q from being answered.
func (q *queuePair) obstructed() bool {
	return q.device.sim.faulty && (q.ignored || q.device.obstructed() || q.peer != nil && q.peer.device.obstructed())
}

// ignore makes q give up connecting in time, because no response will come.
func (q *queuePair) ignore() {
	q.ignored = true
	q.guard()
}

// guard schedules when an obstructed q gives up: RetryTime after its oldest request was sent, or after the last
// response. Without a fault nothing is checked.
func (q *queuePair) guard() {
	s := q.device.sim
	limit := s.profile.RetryTime
	if limit == 0 || q.guarded || q.device.dead {
		return
	}
	if q.parked && !q.retried {
		q.retried = true
		q.progress = q.nextTry(s.now)
	}
	if since, _ := q.waiting(); since < forever {
		q.guarded = true
		s.schedule(since+limit, q.lane, evGiveUp).pair = q
	}
}

// nextTry returns when a sender that waits for a receive tries next, at a time or after it.
func (q *queuePair) nextTry(at time.Duration) time.Duration {
	period := q.device.sim.profile.starved()
	if period == 0 {
		return at
	}
	return q.parkedAt + max((at-q.parkedAt+period-1)/period, 1)*period
}

// waiting returns the oldest unanswered request, and since when it could have been answered. since is forever if there
// is none. While q connects, the request is nil.
func (q *queuePair) waiting() (since time.Duration, oldest *request) {
	switch {
	case q.state == verbs.StateConnecting && q.ignored:
		return q.requestedAt, nil
	case q.state != verbs.StateReady:
		return forever, nil
	}
	for i := q.cleared; i < q.sends.count; i++ {
		r := q.sends.at(i)
		if r.done || r.executed && r.known < forever && r.Flags&verbs.Signalled == 0 {
			continue
		}
		since = max(r.ready, q.open)
		if q.first+uint64(i) < q.next {
			since = r.sent
		}
		return max(since, q.progress), r
	}
	return forever, nil
}

// giveUp fails q if it is still obstructed and its oldest request has not been answered in time.
func (q *queuePair) giveUp() {
	q.guarded = false
	s := q.device.sim
	if !q.obstructed() {
		q.retried = false
		return
	}
	since, oldest := q.waiting()
	limit := s.profile.RetryTime
	switch {
	case since == forever:
	case since+limit > s.now:
		q.guard()
	case oldest == nil:
		q.fail(unanswered("request to connect", limit))
	default:
		oldest.done, oldest.status = true, verbs.StatusRetryExceeded
		q.fail(unanswered("request to "+q.peer.device.address, limit))
	}
}
