//go:build ibverbs && cgo && linux

package ibv

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/onesided/rma/internal/raceorder"
	"github.com/onesided/rma/verbs"
)

const (
	maxCapacity = 1 << 30
	// leastRoom and mostRoom bound the initial size of the card's part of a queue, which is otherwise its capacity.
	leastRoom = 256
	mostRoom  = 4096
)

// firstRoom returns the initial size of the card's part of a queue. A queue that cannot grow gets its whole capacity,
// and room for what queue pairs take beyond that.
func (l *limits) firstRoom(capacity int) int {
	if l.queuesFixed {
		return min(max(capacity+capacity/8, leastRoom), l.completions)
	}
	return min(max(capacity, leastRoom), mostRoom, l.completions)
}

// completionQueue is a queue of the card, and the completions that were taken from it and not polled.
//
// # It does not overflow
//
// The card's part has room for all requests that its queue pairs may have outstanding. It grows when a queue pair is
// attached, or takes no more queue pairs. A request is outstanding until its completion was taken from the card's part,
// so that never has more.
type completionQueue struct {
	device   *device
	queue    queue
	capacity int
	// armed: the next completion generates an event.
	armed atomic.Bool

	mu sync.Mutex
	// attached is the number of requests that the queue pairs may have outstanding, stale the number of completions
	// that closed ones may have left. uses counts the queue pairs.
	attached, stale, uses int
	closed                bool
	// broken: the card's part cannot be polled any more.
	broken      bool
	completions completions
	// held[first:] was taken while no caller polled for it.
	held  []verbs.Completion
	first int

	// failed are failed queue pairs that may have more to flush. failedMu is their mutex.
	failedMu sync.Mutex
	failed   []*queuePair
	some     atomic.Bool
}

// CreateCompletionQueue makes a queue.
func (d *device) CreateCompletionQueue(capacity int) (verbs.CompletionQueue, error) {
	if capacity < 0 || capacity > maxCapacity {
		return nil, d.argumentError("CreateCompletionQueue: capacity %d, allowed are 0 to %d", capacity, maxCapacity)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed.Load() {
		return nil, d.closedError("CreateCompletionQueue")
	}
	q, err := d.card.newQueue(d.limits.firstRoom(capacity))
	if err != nil {
		return nil, d.refused("creating a completion queue", err)
	}
	c := &completionQueue{device: d, queue: q, capacity: max(capacity, 1)}
	queues := append(slices.Clone(*d.queues.Load()), c)
	d.queues.Store(&queues)
	// A sleeper has not armed the new queue.
	d.channel.Wake()
	return c, nil
}

// arm makes the next completion generate an event.
func (c *completionQueue) arm() {
	// Under the mutex, so that armed is not seen as set before the queue is armed.
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed && !c.armed.Swap(true) && c.queue.arm() != nil {
		c.armed.Store(false)
	}
}

// Poll takes completions: first those that were taken before, then the card's, then those of failed queue pairs that
// the card does not have.
func (c *completionQueue) Poll(into []verbs.Completion) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return 0
	}
	n := 0
	if c.first < len(c.held) {
		n = copy(into, c.held[c.first:])
		if c.first += n; c.first == len(c.held) {
			c.held, c.first = c.held[:0], 0
		}
	}
	if len(into) == 0 {
		c.look()
		return 0
	}
	n += c.take(into[n:])
	if n < len(into) && c.some.Load() {
		n += c.flush(into[n:])
	}
	if n > 0 {
		raceorder.Acquire()
	}
	return n
}

// take takes the card's completions.
func (c *completionQueue) take(into []verbs.Completion) (n int) {
	for n < len(into) && !c.broken {
		asked := min(len(into)-n, batch)
		got := c.queue.poll(&c.completions, asked)
		if got < 0 {
			c.broken = true
			c.device.fail((*queuePair).abandonCard, "the card's completion queue cannot be polled", func(q *queuePair) bool { return q.sends == c || q.receives == c })
		}
		for i := range max(got, 0) {
			if c.device.complete(&c.completions, i, &into[n]) {
				n++
			}
		}
		if got < asked {
			c.stale = 0
			break
		}
	}
	return n
}

// look takes the card's completions, as many as there must be room for, to learn the state of the queue pairs.
func (c *completionQueue) look() {
	var some [batch]verbs.Completion
	for len(c.held)-c.first < c.capacity {
		n := c.take(some[:])
		if n == 0 {
			return
		}
		if c.first > 0 {
			c.held = slices.Delete(c.held, 0, c.first)
			c.first = 0
		}
		c.held = append(c.held, some[:n]...)
	}
}

// addFailed adds a failed queue pair to failed.
func (c *completionQueue) addFailed(q *queuePair) {
	c.failedMu.Lock()
	defer c.failedMu.Unlock()
	if !slices.Contains(c.failed, q) {
		c.failed = append(c.failed, q)
	}
	c.some.Store(true)
}

// flush completes the remaining requests of failed queue pairs, once the card has reported all.
func (c *completionQueue) flush(into []verbs.Completion) (n int) {
	c.failedMu.Lock()
	defer c.failedMu.Unlock()
	kept := c.failed[:0]
	for _, q := range c.failed {
		more := false
		if q.sends == c {
			more = q.flush(&q.sending, into, &n)
		}
		if q.receives == c {
			more = q.flush(&q.receiving, into, &n) || more
		}
		if more {
			kept = append(kept, q)
		}
	}
	clear(c.failed[len(kept):])
	c.failed = kept
	c.some.Store(len(kept) > 0)
	return n
}

// attach makes room for the requests of another queue pair.
func (c *completionQueue) attach(requests int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return fmt.Errorf("ibv: %s: queue pair: its completion queue: %w", c.device.name, verbs.ErrClosed)
	case c.broken:
		return fmt.Errorf("ibv: %s: queue pair: the card's completion queue cannot be polled", c.device.name)
	}
	if need := c.attached + c.stale + requests; need > c.queue.room() {
		most := c.device.limits.completions
		if need > most {
			return &verbs.CapabilityError{Device: c.device.attributes.Name, Capability: "have another queue pair complete into this queue",
				Reason: fmt.Sprintf("the card's queues hold at most %d completions, and its queue pairs could have %d", most, need)}
		}
		if err := c.queue.resize(min(max(need, 2*c.queue.room()), most)); err != nil {
			return c.device.refused(fmt.Sprintf("making room for %d completions", need), err)
		}
	}
	c.attached += requests
	c.uses++
	return nil
}

// detach undoes attach, for a queue pair whose completions may be left in the card's queue, and drops those that were
// taken. A number of 0 is that of no queue pair.
func (c *completionQueue) detach(requests int, q *queuePair) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.attached -= requests
	c.uses--
	if q == nil {
		return
	}
	c.stale += requests
	c.held = slices.DeleteFunc(c.held[c.first:], func(d verbs.Completion) bool { return d.QueuePair == q.number })
	c.first = 0
	c.failedMu.Lock()
	defer c.failedMu.Unlock()
	c.failed = slices.DeleteFunc(c.failed, func(other *queuePair) bool { return other == q })
}

// Close destroys the queue.
func (c *completionQueue) Close() error {
	d := c.device
	d.mu.Lock()
	defer d.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	if c.uses > 0 {
		return d.argumentError("Close of a completion queue with %d uses by queue pairs; close them first", c.uses)
	}
	queues := slices.DeleteFunc(slices.Clone(*d.queues.Load()), func(other *completionQueue) bool { return other == c })
	d.queues.Store(&queues)
	return c.destroy()
}

// destroy destroys the queue, with mu held.
func (c *completionQueue) destroy() error {
	c.closed = true
	if err := c.queue.destroy(); err != nil {
		return c.device.refused("destroying a completion queue", err)
	}
	return nil
}
