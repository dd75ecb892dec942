// Package latch guards a few instructions: a lock for sections so short that no goroutine sleeps for them, and a store
// with release order.
//
//	var l latch.Latch
//	l.Lock()
//	count++
//	l.Unlock()
//
// An atomic store in Go is sequentially consistent. On amd64 that is a locked instruction, which waits until every
// earlier store has reached the cache. That takes 20 cycles at best, and a memory latency at worst. Release order
// suffices to unlock, or to set a flag whose readers only need the earlier stores. Every store on amd64 has it.
//
// # Invariants
//
// An atomic load that sees a value of Release also makes the stores before that Release visible. Release gives no order
// with later loads. A sleeper and its waker, which each store and then load the other's word, need an atomic store.
package latch

import _ "github.com/onesided/rma/internal/platform"
