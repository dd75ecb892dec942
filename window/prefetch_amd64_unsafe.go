//go:build amd64

package window

import "unsafe"

// prefetches tells that prefetch does something.
const prefetches = true

// prefetch begins to fetch the cache line at an address, to write to it. Sound for
// any address: the processor ignores what it cannot fetch.
//
//go:noescape
func prefetch(at unsafe.Pointer)

// prefetchRead begins to fetch the cache line at an address, to read it. It is as sound.
//
//go:noescape
func prefetchRead(at unsafe.Pointer)
