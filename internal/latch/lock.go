package latch

import "sync"

// A Lock is a Latch that may also be held for a long time, such as while what it guards is sent. A short holder pays
// only for the latch, but sleeps while there is a long holder. The zero value is unlocked. A Lock must not be copied.
//
// A long holder has both latch and long, a short holder only latch. So latch excludes all holders from each other, and
// a goroutine spins on it no longer than a short section lasts.
type Lock struct {
	latch Latch
	long  sync.Mutex
}

// Lock takes the lock for any time.
func (l *Lock) Lock() {
	l.long.Lock()
	l.latch.Lock()
}

// Unlock releases what Lock or Extend has taken.
func (l *Lock) Unlock() {
	l.latch.Unlock()
	l.long.Unlock()
}

// LockShort takes the lock for a few instructions that do not block.
func (l *Lock) LockShort() {
	if !l.latch.held.CompareAndSwap(0, 1) {
		l.waitShort()
	}
}

func (l *Lock) waitShort() {
	l.Lock()
	l.long.Unlock()
}

// UnlockShort releases what LockShort has taken.
func (l *Lock) UnlockShort() { l.latch.Unlock() }

// Extend is UnlockShort followed by Lock: others may take the lock in between.
func (l *Lock) Extend() {
	l.latch.Unlock()
	l.Lock()
}
