//go:build !amd64 || race

package latch

import "sync/atomic"

// Release stores value in word, after every earlier load and store.
func Release(word *atomic.Uint32, value uint32) { word.Store(value) }
