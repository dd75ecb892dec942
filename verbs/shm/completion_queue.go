package shm

import (
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

// completionQueue is a bounded queue and the queue pairs that complete into it. It takes
// memory for as many completions as it has held at once.
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
	overflow bool
	// silent are the queue pairs that have said their last word.
	silent map[uint32]bool

	// pairs are driven by Poll. The slice is replaced, never changed.
	pairs atomic.Pointer[[]*queuePair]
	// filled mirrors count, so that an empty poll takes no lock.
	filled atomic.Int32
}

func (d *device) CreateCompletionQueue(capacity int) (verbs.CompletionQueue, error) {
	if d.closed.Load() {
		return nil, d.closedError("CreateCompletionQueue")
	}
	if capacity < 0 || capacity > maxCapacity {
		return nil, argumentError("CreateCompletionQueue: capacity %d, allowed are 0 to %d", capacity, maxCapacity)
	}
	capacity = max(capacity, 1)
	q := &completionQueue{device: d, capacity: capacity, entries: make([]verbs.Completion, min(capacity, firstEntries)), silent: make(map[uint32]bool)}
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
	if q.filled.Load() == 0 {
		return 0
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(len(into), q.count)
	for i := range n {
		into[i] = q.entries[q.first]
		if q.first++; q.first == len(q.entries) {
			q.first = 0
		}
	}
	q.count -= n
	q.filled.Store(int32(q.count))
	return n
}

// push adds a completion, wakes whoever sleeps for it, and tells whether there was
// room.
func (q *completionQueue) push(c verbs.Completion) bool {
	defer q.device.bell.ringIfHeard()
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.overflow && q.count < q.capacity {
		q.add(c)
		return true
	}
	q.overflow = true
	if !q.silent[c.QueuePair] {
		q.silent[c.QueuePair] = true
		if c.Status == verbs.StatusSuccess {
			c.Status = verbs.StatusFlushed
		}
		q.add(c)
	}
	return false
}

// add puts a completion behind the others.
func (q *completionQueue) add(c verbs.Completion) {
	if q.count == len(q.entries) {
		larger := make([]verbs.Completion, 2*q.count)
		copy(larger[copy(larger, q.entries[q.first:]):], q.entries[:q.first])
		q.entries, q.first = larger, 0
	}
	q.entries[(q.first+q.count)%len(q.entries)] = c
	q.count++
	q.filled.Store(int32(q.count))
}

// drop forgets the completions of a queue pair.
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

func (q *completionQueue) attach(pair *queuePair) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, p := range *q.pairs.Load() {
		if p == pair {
			return
		}
	}
	pairs := append(append([]*queuePair(nil), *q.pairs.Load()...), pair)
	q.pairs.Store(&pairs)
}

func (q *completionQueue) detach(pair *queuePair) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var pairs []*queuePair
	for _, p := range *q.pairs.Load() {
		if p != pair {
			pairs = append(pairs, p)
		}
	}
	q.pairs.Store(&pairs)
}

// Close destroys the queue, whose queue pairs have been closed.
func (q *completionQueue) Close() error {
	if n := len(*q.pairs.Load()); n != 0 {
		return argumentError("completion queue: Close with %d queue pairs that use it; close them first", n)
	}
	return nil
}
