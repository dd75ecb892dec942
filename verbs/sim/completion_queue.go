package sim

import (
	"time"

	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/completion"
)

// completionQueue is a queue of a device.
type completionQueue struct {
	device *Device
	held   *completion.Queue
}

// CreateCompletionQueue makes a completion queue.
func (d *Device) CreateCompletionQueue(capacity int) (verbs.CompletionQueue, error) {
	d.sim.mu.Lock()
	defer d.sim.mu.Unlock()
	if d.closed {
		return nil, d.closedError("CreateCompletionQueue")
	}
	held, err := completion.New(capacity)
	if err != nil {
		return nil, argumentError("CreateCompletionQueue: %v", err)
	}
	return &completionQueue{device: d, held: held}, nil
}

// Poll takes what has completed by the time of the task that calls, and charges it.
func (q *completionQueue) Poll(into []verbs.Completion) int {
	s := q.device.sim
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settle()
	n := q.held.Take(into)
	s.charge(s.profile.Poll + time.Duration(n)*s.profile.Complete)
	return n
}

// push adds a completion, wakes who sleeps for it, and tells whether there was room.
func (q *completionQueue) push(c *verbs.Completion) (room bool) {
	room = q.held.Push(c)
	q.device.bell.ring()
	return room
}

// Close destroys the queue, whose queue pairs have been closed.
func (q *completionQueue) Close() error {
	if _, err := q.held.Close(); err != nil {
		return argumentError("%v", err)
	}
	return nil
}
