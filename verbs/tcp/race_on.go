//go:build race

package tcp

import "sync/atomic"

// order stands for the order that messages bring, which the race detector cannot see:
// what was done before a write happened before what is done after the read of it.
var order atomic.Uint64

func beforeWrite() { order.Add(1) }
func afterRead()   { order.Load() }
