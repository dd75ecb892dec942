package completion

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/onesided/rma/verbs"
)

const (
	// MaxCapacity is the maximum capacity of a queue.
	MaxCapacity = 1 << 30
	// firstEntries is the number of entries that a queue has memory for at first.
	firstEntries = 64
)

// A Queue holds completions. Use New to make one.
type Queue struct {
	// filled mirrors count, so that Take of an empty queue takes no lock.
	filled atomic.Int32

	mu       sync.Mutex
	capacity int
	// entries is a ring of count waiting completions from first on.
	entries  []verbs.Completion
	first    int
	count    int
	overflow bool
	// silent has the queue pairs that have had their final completion. It is nil before the first.
	silent map[uint32]bool
	uses   int
	closed bool
}

// New returns a queue. capacity is from 0 to MaxCapacity; 0 counts as 1.
func New(capacity int) (*Queue, error) {
	if capacity < 0 || capacity > MaxCapacity {
		return nil, fmt.Errorf("completion: capacity %d, allowed are 0 to %d", capacity, MaxCapacity)
	}
	capacity = max(capacity, 1)
	return &Queue{capacity: capacity, entries: make([]verbs.Completion, min(capacity, firstEntries))}, nil
}

// Take stores at most len(into) completions in into, oldest first, and returns their number.
func (q *Queue) Take(into []verbs.Completion) int {
	if q.filled.Load() == 0 {
		return 0
	}
	return q.take(into)
}

func (q *Queue) take(into []verbs.Completion) int {
	q.mu.Lock()
	n := min(len(into), q.count)
	for i := range n {
		into[i] = q.entries[q.first]
		if q.first++; q.first == len(q.entries) {
			q.first = 0
		}
	}
	if q.count -= n; q.count == 0 {
		// A queue with few completions uses the same memory again and again.
		q.first = 0
	}
	q.filled.Store(int32(q.count))
	q.mu.Unlock()
	return n
}

// Push adds a completion and reports whether there was room. Without room the queue pair has to fail: its completions
// are lost from then on, except for one that reports the failure, with verbs.StatusFlushed if the request succeeded.
// The completion belongs to the caller again at return.
func (q *Queue) Push(c *verbs.Completion) (room bool) {
	q.mu.Lock()
	if room = !q.overflow && q.count < q.capacity; room {
		q.add(c)
	} else {
		q.lose(c)
	}
	q.mu.Unlock()
	return room
}

// lose keeps the first completion without room of each queue pair.
func (q *Queue) lose(c *verbs.Completion) {
	q.overflow = true
	if q.silent[c.QueuePair] {
		return
	}
	if q.silent == nil {
		q.silent = make(map[uint32]bool)
	}
	q.silent[c.QueuePair] = true
	last := *c
	if last.Status == verbs.StatusSuccess {
		last.Status = verbs.StatusFlushed
	}
	q.add(&last)
}

// add appends a completion.
func (q *Queue) add(c *verbs.Completion) {
	if q.count == len(q.entries) {
		larger := make([]verbs.Completion, 2*q.count)
		copy(larger[copy(larger, q.entries[q.first:]):], q.entries[:q.first])
		q.entries, q.first = larger, 0
	}
	q.entries[q.place(q.count)] = *c
	q.count++
	q.filled.Store(int32(q.count))
}

// place returns the index in entries of the i-th waiting completion.
func (q *Queue) place(i int) int {
	at := q.first + i
	if at >= len(q.entries) {
		at -= len(q.entries)
	}
	return at
}

// Attach registers a queue pair with the queues of its sends and receives, which may be the same queue. It reports
// whether both are open. Nothing may be pushed to a closed queue.
func Attach(sends, receives *Queue) (open bool) {
	if !sends.attach() {
		return false
	}
	if receives.attach() {
		return true
	}
	sends.leave()
	return false
}

// Detach unregisters a queue pair that is destroyed, and removes its completions, because its number may be used again.
func Detach(sends, receives *Queue, number uint32) {
	for _, q := range []*Queue{sends, receives} {
		q.forget(number)
		q.leave()
	}
}

func (q *Queue) attach() (open bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	q.uses++
	return true
}

func (q *Queue) leave() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.uses--
}

func (q *Queue) forget(number uint32) {
	q.mu.Lock()
	defer q.mu.Unlock()
	kept := 0
	for i := range q.count {
		if c := &q.entries[q.place(i)]; c.QueuePair != number {
			q.entries[q.place(kept)] = *c
			kept++
		}
	}
	q.count = kept
	q.filled.Store(int32(kept))
	delete(q.silent, number)
}

// Close closes the queue, and reports whether it was open. It returns an error while queue pairs use the queue.
func (q *Queue) Close() (wasOpen bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.uses != 0 {
		return true, fmt.Errorf("completion: Close of a queue with %d uses by queue pairs; close them first", q.uses)
	}
	wasOpen = !q.closed
	q.closed = true
	return wasOpen, nil
}
