package tcp

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/onesided/rma/verbs"
)

const (
	// maxDepth bounds what is outstanding of a queue pair, maxCapacity what a queue holds
	// of many.
	maxDepth    = 1 << 20
	maxCapacity = 1 << 30
	// firstEntries is how many a queue has memory for at first.
	firstEntries = 64
)

// errOverflow fails the queue pairs of a queue that had no room.
var errOverflow = fmt.Errorf("tcp: completion queue overflow: %w", verbs.ErrQueueFull)

// completionQueue is a bounded queue. A poll of any drives the whole device. It takes
// memory for as many completions as it has held at once: a large job has one for all of
// its ranks, few of which it may ever hear from.
//
// One that has had no room takes no more. But so that nobody waits for ever it has each
// queue pair say a last word, that which had no room first: as a failure, in place of
// what it was. Those are beyond the capacity.
type completionQueue struct {
	device *device

	mu       sync.Mutex
	capacity int
	entries  []verbs.Completion
	first    int
	count    int
	pairs    int
	overflow bool
	// silent are the queue pairs that have said their last word.
	silent map[uint32]bool
	closed bool

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
	capacity = max(capacity, 1)
	return &completionQueue{device: d, capacity: capacity, entries: make([]verbs.Completion, min(capacity, firstEntries)), silent: make(map[uint32]bool)}, nil
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
	room := !q.overflow && q.count < q.capacity
	if room {
		q.add(c)
	} else {
		q.overflow = true
		if !q.silent[c.QueuePair] {
			q.silent[c.QueuePair] = true
			last := *c
			if last.Status == verbs.StatusSuccess {
				last.Status = verbs.StatusFlushed
			}
			q.add(&last)
		}
	}
	q.mu.Unlock()
	q.device.channel.Ring()
	return room
}

// add puts a completion behind the others.
func (q *completionQueue) add(c *verbs.Completion) {
	if q.count == len(q.entries) {
		larger := make([]verbs.Completion, 2*q.count)
		copy(larger[copy(larger, q.entries[q.first:]):], q.entries[:q.first])
		q.entries, q.first = larger, 0
	}
	at := q.first + q.count
	if at >= len(q.entries) {
		at -= len(q.entries)
	}
	q.entries[at] = *c
	q.count++
	q.filled.Store(int32(q.count))
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
	delete(q.silent, number)
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
