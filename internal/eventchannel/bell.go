package eventchannel

import (
	"sync"
	"sync/atomic"
	"time"
)

// A Bell is where goroutines of this process sleep: a sleeper parks its goroutine and no
// thread. It is a verbs.CompletionChannel.
type Bell struct {
	// sequence counts the rings that anyone may have heard; it changes under mu, so
	// that a ring cannot fall between a sleeper's last look and its wait.
	sleepers atomic.Int32
	sequence atomic.Uint32
	mu       sync.Mutex
	rung     sync.Cond
	// timer rings at due, the soonest that a sleeper may have to wake by itself;
	// due is zero when it is not set. One timer serves all sleepers for good, so
	// that to sleep allocates nothing.
	timer *time.Timer
	due   time.Time
}

// New makes one.
func New() *Bell {
	b := new(Bell)
	b.rung.L = &b.mu
	return b
}

// Prepare announces a sleeper. The announcement comes before the caller's loads,
// and RingIfHeard looks for it after the ringer's stores, so one sees the other.
func (b *Bell) Prepare() uint32 {
	b.sleepers.Add(1)
	return b.sequence.Load()
}

// Finish takes the announcement back.
func (b *Bell) Finish() { b.sleepers.Add(-1) }

// Sleep waits for a ring, no longer than the limit, or without end if that is less than 0.
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
	// The timer's ring ends the other sleepers' waits too. They look again.
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

// RingIfHeard is Ring, and a load when nobody sleeps.
func (b *Bell) RingIfHeard() {
	if b.sleepers.Load() != 0 {
		b.Ring()
	}
}
