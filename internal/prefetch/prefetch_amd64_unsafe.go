//go:build amd64

package prefetch

import "unsafe"

// Works reports whether the functions of this package do something.
const Works = true

// Write begins to fetch the cache line at an address, to write to it. It is sound for any address: the processor
// ignores what it cannot fetch.
//
//go:noescape
func Write(at unsafe.Pointer)

// Read begins to fetch the cache line at an address, to read it. It is as sound as Write.
//
//go:noescape
func Read(at unsafe.Pointer)
