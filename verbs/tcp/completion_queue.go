package tcp

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/onesided/rma/verbs"
)

const maxCapacity = 1 << 20

// errOverflow fails the queue pairs of a queue that had no room.
var errOverflow = fmt.Errorf("tcp: completion queue overflow: %w", verbs.ErrQueueFull)

// completionQueue is a bounded queue. A poll of any drives the whole device.
type completionQueue struct {
	device *device

	mu       sync.Mutex
	entries  []verbs.Completion
	first    int
	count    int
	pairs    int
	overflow bool
	closed   bool

	// filled mirrors count, so that an empty poll takes no lock.
	filled atomic.Int32
}

// CreateCompletionQueue makes a queue.
func (d *device) CreateCompletionQueue(capacity int) (verbs.CompletionQueue, error) {
	if d.closed.Load() {
		return nil, d.closedError("CreateCompletionQueue")
	}
	if capacity < 0 || capacity > maxCapacity {
		return nil, argumentError("CreateCompletionQueue: capacity %d, allowed are 0 to %d", capacity, maxCapacity)
	}
	d.queues.Add(1)
	return &completionQueue{device: d, entries: make([]verbs.Completion, max(capacity, 1))}, nil
}

// Poll drives the device and takes completions.
func (q *completionQueue) Poll(into []verbs.Completion) int {
	q.device.drive()
	if q.filled.Load() == 0 {
		return 0
	}
	q.mu.Lock()
	n := min(len(into), q.count)
	for i := range n {
		into[i] = q.entries[q.first]
		if q.first++; q.first == len(q.entries) {
			q.first = 0
		}
	}
	q.count -= n
	q.filled.Store(int32(q.count))
	q.mu.Unlock()
	return n
}

// push adds a completion, wakes whoever sleeps for it, and tells whether there was
// room.
func (q *completionQueue) push(c *verbs.Completion) bool {
	q.mu.Lock()
	room := !q.overflow && q.count < len(q.entries)
	if room {
		at := q.first + q.count
		if at >= len(q.entries) {
			at -= len(q.entries)
		}
		q.entries[at] = *c
		q.count++
		q.filled.Store(int32(q.count))
	} else {
		q.overflow = true
	}
	q.mu.Unlock()
	q.device.channel.Ring()
	return room
}

// drop forgets the completions of a queue pair that is destroyed.
func (q *completionQueue) drop(number uint32) {
	q.mu.Lock()
	defer q.mu.Unlock()
	kept := 0
	for i := range q.count {
		c := q.entries[(q.first+i)%len(q.entries)]
		if c.QueuePair != number {
			q.entries[(q.first+kept)%len(q.entries)] = c
			kept++
		}
	}
	q.count = kept
	q.filled.Store(int32(kept))
}

// errClosedQueue refuses a queue pair.
var errClosedQueue = fmt.Errorf("tcp: queue pair: its completion queue: %w", verbs.ErrClosed)

// use counts a queue pair in, unless the queue is closed.
func (q *completionQueue) use() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	q.pairs++
	return true
}

// leave counts one out.
func (q *completionQueue) leave() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.pairs--
}

// Close destroys the queue, whose queue pairs have been closed.
func (q *completionQueue) Close() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.pairs != 0 {
		return argumentError("completion queue: Close with %d uses by queue pairs; close them first", q.pairs)
	}
	if !q.closed {
		q.closed = true
		q.device.queues.Add(-1)
	}
	return nil
}
