// Package latch guards a few instructions: a lock for sections so short that nobody
// sleeps for them, and a store that publishes what was stored before it.
//
//	var l latch.Latch
//	l.Lock()
//	count++
//	l.Unlock()
//
// An atomic store in Go is sequentially consistent. On amd64 that is a locked
// instruction, which waits until every store before it has reached the cache, some
// 20 cycles at best and a memory latency at worst. To give a lock back, or to set a
// flag whose readers ask no more than to see what was stored before, release order
// is enough, which every store there has.
//
// # Invariants
//
// Whoever sees a value that Release stored, by an atomic load, sees the stores
// before it. Nothing is said of loads after it: a sleeper and its waker, who each
// store and then look at what the other stored, need an atomic store.
package latch

import _ "github.com/onesided/rma/internal/platform"
