//go:build ibverbs && cgo && linux

package ibv

import (
	"sync"
	"sync/atomic"
	"time"
)

// A bell is where the rank sleeps. A goroutine waits for the card's events and rings.
//
// Whoever announces a sleep has every completion queue armed that is not, before he looks
// whether something has come: what comes afterwards makes an event.
type bell struct {
	// arm arms the queues.
	arm func()

	sleepers atomic.Int32
	// sequence counts rings. It changes under mu, so that none falls between a sleeper's
	// last look and his sleep.
	sequence atomic.Uint32
	mu       sync.Mutex
	rung     sync.Cond
	// One timer, made at first use, ends the sleeps of all who have a limit, at due, which is
	// the first; those who have time left look once more.
	timer *time.Timer
	due   time.Time
}

func newBell(arm func()) *bell {
	b := &bell{arm: arm}
	b.rung.L = &b.mu
	return b
}

// Prepare announces a sleeper.
func (b *bell) Prepare() uint32 {
	b.sleepers.Add(1)
	ticket := b.sequence.Load()
	b.arm()
	return ticket
}

// Finish takes the announcement back.
func (b *bell) Finish() { b.sleepers.Add(-1) }

// Sleep waits for a ring or for the limit.
func (b *bell) Sleep(ticket uint32, limit time.Duration) {
	if limit == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if limit > 0 {
		b.schedule(limit)
	}
	for b.sequence.Load() == ticket {
		b.rung.Wait()
	}
}

// schedule has a ring at the end of a limit. mu is held.
func (b *bell) schedule(limit time.Duration) {
	due := time.Now().Add(limit)
	if !b.due.IsZero() && b.due.Before(due) {
		return
	}
	b.due = due
	if b.timer == nil {
		b.timer = time.AfterFunc(limit, b.expire)
		return
	}
	b.timer.Reset(limit)
}

func (b *bell) expire() {
	b.mu.Lock()
	b.due = time.Time{}
	b.sequence.Add(1)
	b.mu.Unlock()
	b.rung.Broadcast()
}

// Ring wakes all sleepers.
func (b *bell) Ring() {
	// A sleeper is announced before he looks for what the ringer has done before.
	if b.sleepers.Load() == 0 {
		return
	}
	b.mu.Lock()
	b.sequence.Add(1)
	b.mu.Unlock()
	b.rung.Broadcast()
}
