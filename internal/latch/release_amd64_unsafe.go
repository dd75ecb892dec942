//go:build amd64 && !race

package latch

import (
	"sync/atomic"
	"unsafe"
)

// Release stores value in word, after every earlier load and store. It is sound because this processor does not move a
// store ahead of earlier loads and stores, and the compiler keeps their order. An aligned word is stored whole.
func Release(word *atomic.Uint32, value uint32) { *(*uint32)(unsafe.Pointer(word)) = value }
