//go:build !amd64

package window

import "unsafe"

const prefetches = false

func prefetch(unsafe.Pointer) {}

func prefetchRead(unsafe.Pointer) {}
