package sim

import (
	"fmt"

	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/verbs"
)

// PostSend posts requests in order, each at the time at which the processor has written it.
func (q *queuePair) PostSend(requests []verbs.SendRequest) (int, error) {
	s := q.device.sim
	s.mu.Lock()
	defer s.mu.Unlock()
	if q.closed || s.dying() {
		return 0, fmt.Errorf("sim: PostSend: %w", verbs.ErrClosed)
	}
	defer q.arm()
	if q.obstructed() {
		defer q.guard()
	}
	p := &s.profile
	for i := range requests {
		length, err := s.attributes.CheckSend(&requests[i])
		if err != nil {
			return i, err
		}
		if q.sends.count >= q.maxSends {
			return i, verbs.ErrQueueFull
		}
		begun := *s.local()
		q.device.spend(p.Post + p.PostSegment*further(requests[i].Segments))
		r := q.sends.extend()
		r.take(&requests[i], length)
		r.ready = *s.local() + p.Fetch
		if r.Flags&verbs.Inline != 0 {
			q.device.spend(takes(length, p.InlineRate))
			r.ready = *s.local() + p.FetchInline
		}
		if q.state == verbs.StateError {
			q.complete(r, verbs.StatusFlushed)
			q.forget(1)
			q.next = q.first
			continue
		}
		q.reportPosted(begun, r.Opcode, r.ID, length)
	}
	return len(requests), nil
}

// take copies a request, whose slices belong to the caller, into the reused slices.
func (r *request) take(from *verbs.SendRequest, length int) {
	segments := r.Segments[:0]
	if from.Flags&verbs.Inline != 0 {
		r.inline = r.inline[:0]
		for i := range from.Segments {
			r.inline = append(r.inline, from.Segments[i].Memory...)
		}
		segments = append(segments, verbs.Segment{Memory: r.inline})
	} else {
		segments = append(segments, from.Segments...)
	}
	r.SendRequest = *from
	r.Segments, r.length = segments, length
	r.sent, r.known, r.executed, r.done, r.status = 0, 0, false, false, verbs.StatusSuccess
}

// PostReceive posts receives in order.
func (q *queuePair) PostReceive(requests []verbs.ReceiveRequest) (int, error) {
	s := q.device.sim
	s.mu.Lock()
	defer s.mu.Unlock()
	if q.closed || s.dying() {
		return 0, fmt.Errorf("sim: PostReceive: %w", verbs.ErrClosed)
	}
	for i := range requests {
		segments := requests[i].Segments
		if len(segments) > maxSegments {
			return i, argumentError("PostReceive: %s, at most %d are allowed", errtext.Count(len(segments), "segment"), maxSegments)
		}
		if q.receives.count >= q.maxReceives {
			return i, verbs.ErrQueueFull
		}
		begun := *s.local()
		q.device.spend(s.profile.PostReceive + s.profile.PostSegment*further(segments))
		r := q.receives.extend()
		*r = receive{id: requests[i].ID, segments: append(r.segments[:0], segments...), ready: *s.local()}
		for _, segment := range segments {
			r.length += len(segment.Memory)
		}
		q.reportPosted(begun, verbs.OpReceive, r.id, r.length)
		if q.state == verbs.StateError {
			q.received(verbs.StatusFlushed, verbs.OpReceive, 0, 0)
		}
	}
	if q.peer != nil {
		q.peer.unpark()
	}
	return len(requests), nil
}
