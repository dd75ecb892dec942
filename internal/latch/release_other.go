//go:build !amd64 || race

package latch

import "sync/atomic"

// Release stores value in word, after every load and store before it.
func Release(word *atomic.Uint32, value uint32) { word.Store(value) }
