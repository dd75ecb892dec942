package rails

import (
	"fmt"

	"github.com/onesided/rma/verbs"
)

// completedFirst records a completion of rail 0, which also covers earlier requests there.
func (q *queuePair) completedFirst(c *verbs.Completion) {
	q.mu.Lock()
	if i, ok := q.index(c.ID); ok && !q.closed {
		if c.Status != verbs.StatusSuccess {
			q.entry(i).worse(c.Status)
			q.recordFailure(q.causeOf(0, c.Status))
		}
		q.known = max(q.known, i+1)
		q.report()
	}
	q.mu.Unlock()
	q.sever()
}

// index returns the index of the outstanding request of a completion.
func (q *queuePair) index(id uint64) (i int, ok bool) {
	i = int((uint32(id) - (q.next - uint32(q.count))) & numberMask)
	return i, i < q.count
}

// completedOther records a completion of another rail.
func (q *queuePair) completedOther(rail int, c *verbs.Completion) {
	q.mu.Lock()
	switch kind := uint32(c.ID) & kindMask; {
	case q.closed:
	case kind == receiveKind && c.Status == verbs.StatusSuccess:
		q.recordFailureIf(q.keys.received(q, rail, c))
	case kind == sentKind && c.Status == verbs.StatusSuccess:
		q.recordFailureIf(q.keys.sent(q, int(c.ID&numberMask)))
	case kind != partKind:
		q.recordFailure(q.causeOf(rail, c.Status))
	default:
		q.completedPart(rail, c)
	}
	q.mu.Unlock()
	q.sever()
}

func (q *queuePair) recordFailureIf(err error) {
	if err != nil {
		q.recordFailure(err)
	}
}

// completedPart records that a part on another rail has ended.
func (q *queuePair) completedPart(rail int, c *verbs.Completion) {
	i, ok := q.index(c.ID)
	if !ok {
		return
	}
	e := q.entry(i)
	e.parts--
	q.onOthers--
	if c.Status != verbs.StatusSuccess {
		e.worse(c.Status)
		q.recordFailure(q.causeOf(rail, c.Status))
	}
	q.release()
	q.report()
	// The part counts as outstanding until report has stored the completion. A concurrent poll that loads 0 from
	// onOthers skips the other rails, takes the stored completions, and may then sleep: nothing would wake it for a
	// later completion.
	q.device.onOthers.Add(-1)
}

// report completes the requests of which all parts have ended, in order.
func (q *queuePair) report() {
	for q.count > 0 {
		e := q.entry(0)
		if q.known == 0 && !e.refused || e.parts > 0 {
			return
		}
		status := e.status
		if q.flushing {
			status = verbs.StatusFlushed
		}
		q.flushing = status != verbs.StatusSuccess
		c := verbs.Completion{ID: e.id, QueuePair: q.numbers[0], Status: status, Opcode: e.opcode}
		if q.at++; q.at == len(q.records) {
			q.at = 0
		}
		q.count--
		q.backlog -= q.device.division.burden(e.length)
		q.known = max(q.known-1, 0)
		if (status != verbs.StatusSuccess || e.flags&verbs.Signalled != 0) && !q.sends.completed.Push(&c) {
			q.recordFailure(fmt.Errorf("rails: completion queue overflow: %w", verbs.ErrQueueFull))
		}
	}
}

// PostReceive posts receives on rail 0.
func (q *queuePair) PostReceive(requests []verbs.ReceiveRequest) (int, error) {
	n, err := q.pairs[0].PostReceive(requests)
	q.mu.Lock()
	if !q.closed {
		q.lookForFailure()
	}
	q.mu.Unlock()
	q.sever()
	if err != nil && err != verbs.ErrQueueFull {
		err = of(0, err)
	}
	return n, err
}
