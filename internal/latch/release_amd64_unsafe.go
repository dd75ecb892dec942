//go:build amd64 && !race

package latch

import (
	"sync/atomic"
	"unsafe"
)

// Release stores value in word, after every load and store before it. Sound because
// this processor moves no store ahead of those, the compiler keeps a store behind
// the loads and stores before it, and an aligned word is stored whole.
func Release(word *atomic.Uint32, value uint32) { *(*uint32)(unsafe.Pointer(word)) = value }
