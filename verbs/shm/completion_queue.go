package shm

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/onesided/rma/internal/completion"
	"github.com/onesided/rma/verbs"
)

// completionQueue is a queue and the queue pairs that complete into it.
type completionQueue struct {
	device *device
	held   *completion.Queue

	// pairs are driven by Poll. The slice is replaced, never changed, under mu.
	pairs atomic.Pointer[[]*queuePair]
	mu    sync.Mutex
}

func (d *device) CreateCompletionQueue(capacity int) (verbs.CompletionQueue, error) {
	if d.closed.Load() {
		return nil, d.closedError("CreateCompletionQueue")
	}
	held, err := completion.New(capacity)
	if err != nil {
		return nil, argumentError("CreateCompletionQueue: %v", err)
	}
	q := &completionQueue{device: d, held: held}
	q.pairs.Store(new([]*queuePair))
	return q, nil
}

// Poll drives the queue pairs and takes completions.
func (q *completionQueue) Poll(into []verbs.Completion) int {
	for _, pair := range *q.pairs.Load() {
		if pair.stirs() {
			pair.progress()
		}
	}
	return q.held.Take(into)
}

// push adds a completion, wakes the sleepers, and reports whether there was room.
func (q *completionQueue) push(c *verbs.Completion) (room bool) {
	room = q.held.Push(c)
	q.device.channel.WakeIfSleeping()
	return room
}

// attachQueues makes the queues drive a queue pair. It reports whether both are open.
func (q *queuePair) attachQueues() (open bool) {
	if !completion.Attach(q.sendCQ.held, q.recvCQ.held) {
		return false
	}
	q.sendCQ.include(q)
	q.recvCQ.include(q)
	return true
}

// detachQueues undoes attachQueues, and drops the completions of the queue pair, which is closed.
func (q *queuePair) detachQueues() {
	q.sendCQ.exclude(q)
	q.recvCQ.exclude(q)
	completion.Detach(q.sendCQ.held, q.recvCQ.held, q.number)
}

// include adds a queue pair to those that are driven, once, even if it uses the queue for both directions.
func (q *completionQueue) include(pair *queuePair) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if pairs := *q.pairs.Load(); !slices.Contains(pairs, pair) {
		more := append(slices.Clone(pairs), pair)
		q.pairs.Store(&more)
	}
}

func (q *completionQueue) exclude(pair *queuePair) {
	q.mu.Lock()
	defer q.mu.Unlock()
	rest := slices.DeleteFunc(slices.Clone(*q.pairs.Load()), func(p *queuePair) bool { return p == pair })
	q.pairs.Store(&rest)
}

// Close destroys the queue. Its queue pairs have been closed.
func (q *completionQueue) Close() error {
	if _, err := q.held.Close(); err != nil {
		return argumentError("%v", err)
	}
	return nil
}
