package tcp

import (
	"github.com/onesided/rma/internal/completion"
	"github.com/onesided/rma/verbs"
)

// completionQueue is a queue whose Poll drives the whole device.
type completionQueue struct {
	device *device
	held   *completion.Queue
}

// CreateCompletionQueue makes a queue.
func (d *device) CreateCompletionQueue(capacity int) (verbs.CompletionQueue, error) {
	if d.closed.Load() {
		return nil, d.closedError("CreateCompletionQueue")
	}
	held, err := completion.New(capacity)
	if err != nil {
		return nil, argumentError("CreateCompletionQueue: %v", err)
	}
	d.queues.Add(1)
	return &completionQueue{d, held}, nil
}

// Poll drives the device and takes completions.
func (q *completionQueue) Poll(into []verbs.Completion) int {
	q.device.drive()
	return q.held.Take(into)
}

// push adds a completion, wakes the sleepers, and reports whether there was room.
func (q *completionQueue) push(c *verbs.Completion) (room bool) {
	room = q.held.Push(c)
	q.device.channel.Wake()
	return room
}

// Close destroys the queue. Its queue pairs have been closed.
func (q *completionQueue) Close() error {
	wasOpen, err := q.held.Close()
	if err != nil {
		return argumentError("%v", err)
	}
	if wasOpen {
		q.device.queues.Add(-1)
	}
	return nil
}
