package latch

import (
	"runtime"
	"sync/atomic"
)

// A Latch is a lock for a few instructions that do not block. The zero value is unlocked. A Latch must not be copied.
type Latch struct{ held atomic.Uint32 }

// spins is the number of polls of a held latch before the processor is given to another goroutine, such as the holder.
const spins = 30

// Lock takes the latch, waiting for it if it is held.
func (l *Latch) Lock() {
	if !l.held.CompareAndSwap(0, 1) {
		l.wait()
	}
}

// Unlock releases the latch, which the caller holds.
func (l *Latch) Unlock() { Release(&l.held, 0) }

func (l *Latch) wait() {
	for i := 1; ; i++ {
		if l.held.Load() == 0 && l.held.CompareAndSwap(0, 1) {
			return
		}
		if i%spins == 0 {
			runtime.Gosched()
		}
	}
}
