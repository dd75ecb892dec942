package sim

import (
	"slices"
	"time"

	"github.com/onesided/rma/internal/completion"
	"github.com/onesided/rma/verbs"
)

// completionQueue is a queue of a device.
type completionQueue struct {
	device      *Device
	completions *completion.Queue
	// exhausted: a fault leaves no room.
	exhausted bool
}

// CreateCompletionQueue makes a completion queue.
func (d *Device) CreateCompletionQueue(capacity int) (verbs.CompletionQueue, error) {
	d.sim.mu.Lock()
	defer d.sim.mu.Unlock()
	if d.unusable() {
		return nil, d.closedError("CreateCompletionQueue")
	}
	completions, err := completion.New(capacity)
	if err != nil {
		return nil, argumentError("CreateCompletionQueue: %v", err)
	}
	q := &completionQueue{device: d, completions: completions}
	d.queues = append(d.queues, q)
	return q, nil
}

// Poll takes what has completed by the time of the calling task, and charges the task.
func (q *completionQueue) Poll(into []verbs.Completion) int {
	s := q.device.sim
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.look() || q.device.dead {
		return 0
	}
	n := q.completions.Take(into)
	q.device.charge(Polled, s.profile.Poll+time.Duration(n)*s.profile.Complete, 0)
	return n
}

// push adds a completion of a queue pair, wakes the sleepers, and reports whether there was room.
func (q *completionQueue) push(of *queuePair, c *verbs.Completion) (room bool) {
	if room = !q.exhausted; room {
		room = q.completions.Push(c)
	} else if !of.silent {
		of.silent = true
		last := *c
		if last.Status == verbs.StatusSuccess {
			last.Status = verbs.StatusFlushed
		}
		q.completions.Push(&last)
	}
	q.device.channel.wake()
	return room
}

// Close destroys the queue. Its queue pairs have been closed.
func (q *completionQueue) Close() error {
	s := q.device.sim
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dying() {
		return q.device.closedError("Close of a completion queue")
	}
	if _, err := q.completions.Close(); err != nil {
		return argumentError("%v", err)
	}
	q.device.queues = slices.DeleteFunc(q.device.queues, func(other *completionQueue) bool { return other == q })
	return nil
}
