package verbstest

import (
	"context"
	"sync"
	"time"
)

// A bell is the completion channel of a card.
type bell struct {
	network *network

	mu       sync.Mutex
	rings    uint32
	sleepers []chan struct{}
}

func (b *bell) Prepare() uint32 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.rings
}

func (b *bell) Sleep(ticket uint32, limit time.Duration) {
	if b.network.broken("sleepers do not sleep") {
		return
	}
	b.mu.Lock()
	if b.rings != ticket && !b.network.broken("a ring before the sleep is lost") {
		b.mu.Unlock()
		return
	}
	woken := make(chan struct{})
	b.sleepers = append(b.sleepers, woken)
	b.mu.Unlock()
	if limit < 0 {
		<-woken
		return
	}
	if b.network.broken("the limit of a sleep is ignored") {
		limit += time.Hour
	}
	end, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	select {
	case <-woken:
	case <-end.Done():
	}
}

func (b *bell) Finish() {}

func (b *bell) Wake() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rings++
	for i, woken := range b.sleepers {
		close(woken)
		if b.network.broken("only one sleeper wakes") {
			b.sleepers = b.sleepers[i+1:]
			return
		}
	}
	b.sleepers = nil
}

// ring is what the card itself does.
func (b *bell) ring() {
	if b.network.broken("completions do not ring") {
		return
	}
	b.Wake()
}
