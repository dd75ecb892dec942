package eventchannel

import (
	"sync"
	"sync/atomic"
	"time"
)

// A Bell is an event channel for goroutines of this process. A sleeper parks its goroutine and blocks no thread. It
// implements verbs.CompletionChannel.
type Bell struct {
	// sequence counts the rings. It changes under mu, so that no ring falls between a sleeper's check of sequence in
	// Sleep and its wait on rung.
	sequence atomic.Uint32
	mu       sync.Mutex
	rung     sync.Cond
	// sleepers counts the announced sleepers.
	sleepers atomic.Int32
	// timer rings at due, the earliest time at which a sleeper's limit ends. due is zero when the timer is not set. One
	// timer serves all sleepers, so that Sleep allocates nothing.
	timer *time.Timer
	due   time.Time
}

// New returns a Bell.
func New() *Bell {
	b := new(Bell)
	b.rung.L = &b.mu
	return b
}

// Prepare announces a sleeper. The announcement precedes the caller's loads, and RingIfHeard reads it after the
// ringer's stores. So the sleeper sees the stores, or the ringer sees the sleeper.
func (b *Bell) Prepare() uint32 {
	b.sleepers.Add(1)
	return b.sequence.Load()
}

// Finish takes the announcement back.
func (b *Bell) Finish() { b.sleepers.Add(-1) }

// Sleep waits for a ring, at most for limit, or without end if limit is negative.
func (b *Bell) Sleep(ticket uint32, limit time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sequence.Load() != ticket || limit == 0 {
		return
	}
	if limit < 0 {
		for b.sequence.Load() == ticket {
			b.rung.Wait()
		}
		return
	}
	// The timer's ring also ends the waits of other sleepers, which check again.
	if due := time.Now().Add(limit); b.due.IsZero() || due.Before(b.due) {
		b.due = due
		if b.timer == nil {
			b.timer = time.AfterFunc(limit, b.expire)
		} else {
			b.timer.Reset(limit)
		}
	}
	b.rung.Wait()
}

// expire rings for sleepers whose limit is over.
func (b *Bell) expire() {
	b.mu.Lock()
	b.due = time.Time{}
	b.sequence.Add(1)
	b.mu.Unlock()
	b.rung.Broadcast()
}

// Ring wakes all sleepers.
func (b *Bell) Ring() {
	b.mu.Lock()
	b.sequence.Add(1)
	b.mu.Unlock()
	b.rung.Broadcast()
}

// RingIfHeard is Ring if there is a sleeper, and otherwise only a load.
func (b *Bell) RingIfHeard() {
	if b.sleepers.Load() != 0 {
		b.Ring()
	}
}
