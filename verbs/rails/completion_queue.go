package rails

import (
	"fmt"

	"github.com/onesided/rma/internal/completion"
	"github.com/onesided/rma/verbs"
)

// batch is how many completions of a rail are taken at once.
const batch = 32

// A railQueue is a queue of a rail. A rail after the first has one, into which everything there completes.
type railQueue struct {
	device *device
	rail   int
	queue  verbs.CompletionQueue

	admission admission
	// taken belongs to the goroutine that is admitted.
	taken [batch]verbs.Completion
}

// look passes completions to settle.
func (q *railQueue) look(settle func(c *verbs.Completion)) {
	if !q.admission.enter() {
		return
	}
	defer func() {
		if q.admission.leave() {
			q.device.channel.Wake()
		}
	}()
	for {
		n := q.queue.Poll(q.taken[:])
		for i := range q.taken[:n] {
			settle(&q.taken[i])
		}
		if n < batch {
			return
		}
	}
}

// completionQueue is a queue of rail 0, and its completions that are the user's.
type completionQueue struct {
	railQueue
	completed *completion.Queue
}

// CreateCompletionQueue makes a queue.
func (d *device) CreateCompletionQueue(capacity int) (verbs.CompletionQueue, error) {
	if d.closed.Load() {
		return nil, d.closedError("CreateCompletionQueue")
	}
	completed, err := completion.New(capacity)
	if err != nil {
		return nil, argumentError("CreateCompletionQueue: %v", err)
	}
	first, err := d.rails[0].CreateCompletionQueue(capacity)
	if err != nil {
		return nil, of(0, err)
	}
	return &completionQueue{railQueue{device: d, queue: first}, completed}, nil
}

// Poll polls the rails, posts deferred requests that can be posted now, and takes completions.
func (q *completionQueue) Poll(into []verbs.Completion) int {
	d := q.device
	if d.closed.Load() {
		return 0
	}
	d.pollOthers()
	q.look(q.settleFirst)
	return q.completed.Take(into)
}

// settleFirst records a completion of rail 0.
func (q *completionQueue) settleFirst(c *verbs.Completion) {
	d := q.device
	if c.Opcode != verbs.OpReceive && c.Opcode != verbs.OpReceiveImmediate {
		if pair := d.pair(c.ID, 0, c.QueuePair); pair != nil {
			pair.completedFirst(c)
		}
		return
	}
	if room := q.completed.Push(c); !room {
		d.numbered(c.QueuePair).fail(fmt.Errorf("rails: completion queue overflow: %w", verbs.ErrQueueFull))
	} else if c.Status != verbs.StatusSuccess {
		pair := d.numbered(c.QueuePair)
		pair.fail(pair.causeOf(0, c.Status))
	}
}

// Close destroys the queue. Its queue pairs have been closed.
func (q *completionQueue) Close() error {
	wasOpen, err := q.completed.Close()
	if err != nil {
		return argumentError("%v", err)
	}
	if !wasOpen {
		return nil
	}
	if err := q.queue.Close(); err != nil {
		return of(0, err)
	}
	return nil
}

func (d *device) newOtherQueue(rail int) (*railQueue, error) {
	// The queue takes memory for as many completions as it has held at once, or as its queue pairs may have.
	queue, err := d.rails[rail].CreateCompletionQueue(completion.MaxCapacity)
	if err != nil {
		return nil, of(rail, err)
	}
	return &railQueue{device: d, rail: rail, queue: queue}, nil
}

// lookEvery is how many polls pass between two polls of an idle rail that the CPU need not move. A peer may request
// keys there.
const lookEvery = 32

// pollOthers takes completions on the rails after the first.
func (d *device) pollOthers() {
	all := d.onOthers.Load() > 0 || d.idlePolls.Add(1)%lookEvery == 0 || d.soon.Load() && d.soon.Swap(false)
	for _, q := range d.others {
		if all || d.servers[q.rail] != nil {
			q.look(q.settleOther)
		}
	}
}

// settleOther records a completion of a rail after the first.
func (q *railQueue) settleOther(c *verbs.Completion) {
	if pair := q.device.pair(c.ID, q.rail, c.QueuePair); pair != nil {
		pair.completedOther(q.rail, c)
	}
}
