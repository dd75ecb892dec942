//go:build !amd64

package prefetch

import "unsafe"

// Works reports whether the functions of this package do something.
const Works = false

// Write does nothing.
func Write(unsafe.Pointer) {}

// Read does nothing.
func Read(unsafe.Pointer) {}
