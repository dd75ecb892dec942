package eventchannel

import (
	"sync"
	"sync/atomic"
	"time"
)

// A Channel is an event channel for goroutines of this process. A sleeper parks its goroutine and blocks no thread. It
// implements verbs.CompletionChannel.
type Channel struct {
	// sequence counts the wakes. It changes under mu, so that no wake falls between a sleeper's check of sequence in
	// Sleep and its wait on woken.
	sequence atomic.Uint32
	mu       sync.Mutex
	woken    sync.Cond
	// sleepers counts the announced sleepers.
	sleepers atomic.Int32
	// timer wakes the sleepers at due, the earliest time at which a sleeper's limit ends. due is zero when the timer is
	// not set. One timer serves all sleepers, so that Sleep allocates nothing.
	timer *time.Timer
	due   time.Time
}

// New returns a Channel.
func New() *Channel {
	c := new(Channel)
	c.woken.L = &c.mu
	return c
}

// Prepare announces a sleeper. The announcement precedes the caller's loads, and WakeIfSleeping reads it after the
// waker's stores. So the sleeper sees the stores, or the waker sees the sleeper.
func (c *Channel) Prepare() uint32 {
	c.sleepers.Add(1)
	return c.sequence.Load()
}

// Finish takes the announcement back.
func (c *Channel) Finish() { c.sleepers.Add(-1) }

// Sleep waits for a wake, at most for limit, or without end if limit is negative.
func (c *Channel) Sleep(ticket uint32, limit time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sequence.Load() != ticket || limit == 0 {
		return
	}
	if limit < 0 {
		for c.sequence.Load() == ticket {
			c.woken.Wait()
		}
		return
	}
	// The timer's wake also ends the waits of other sleepers, which check again.
	if due := time.Now().Add(limit); c.due.IsZero() || due.Before(c.due) {
		c.due = due
		if c.timer == nil {
			c.timer = time.AfterFunc(limit, c.expire)
		} else {
			c.timer.Reset(limit)
		}
	}
	c.woken.Wait()
}

// expire wakes the sleepers whose limit is over.
func (c *Channel) expire() {
	c.mu.Lock()
	c.due = time.Time{}
	c.sequence.Add(1)
	c.mu.Unlock()
	c.woken.Broadcast()
}

// Wake wakes all sleepers.
func (c *Channel) Wake() {
	c.mu.Lock()
	c.sequence.Add(1)
	c.mu.Unlock()
	c.woken.Broadcast()
}

// WakeIfSleeping wakes all sleepers if there are any. Otherwise it is only a load.
func (c *Channel) WakeIfSleeping() {
	if c.sleepers.Load() != 0 {
		c.Wake()
	}
}
