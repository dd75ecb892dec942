package latch

import "sync"

// A Lock is a Latch that may also be held for long: for as long as it takes to send what it
// guards, say. Who takes it for a few instructions pays for the latch alone, unless somebody
// has it for long, for whom it sleeps. Its zero value is free. It must not be copied.
//
// Who has it for long has both; who has it for short only the latch. So the two exclude each
// other by the latch, and nobody spins on that for longer than a short section lasts.
type Lock struct {
	latch Latch
	long  sync.Mutex
}

// Lock takes the lock for as long as the caller likes.
func (l *Lock) Lock() {
	l.long.Lock()
	l.latch.Lock()
}

// Unlock gives back what Lock or Extend has taken.
func (l *Lock) Unlock() {
	l.latch.Unlock()
	l.long.Unlock()
}

// LockShort takes the lock for a few instructions that block on nothing.
func (l *Lock) LockShort() {
	if !l.latch.held.CompareAndSwap(0, 1) {
		l.waitShort()
	}
}

func (l *Lock) waitShort() {
	l.Lock()
	l.long.Unlock()
}

// UnlockShort gives back what LockShort has taken.
func (l *Lock) UnlockShort() { l.latch.Unlock() }

// Extend is UnlockShort and Lock: others may have it in between.
func (l *Lock) Extend() {
	l.latch.Unlock()
	l.Lock()
}
