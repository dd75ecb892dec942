// Package prefetch has the processor fetch cache lines before they are used, and does not wait for them. A loop that
// reads or writes elements all over a large memory otherwise waits for one line at a time. On other processors than
// amd64 its functions do nothing.
package prefetch

import (
	"unsafe"

	_ "github.com/onesided/rma/internal/platform"
)

// Element starts to fetch the cache line of an element that is to be read soon.
func Element[T any](element *T) { Read(unsafe.Pointer(element)) }

// ElementToWrite starts to fetch the cache line of an element that is to be written soon. The line is taken from other
// processors' caches.
func ElementToWrite[T any](element *T) { Write(unsafe.Pointer(element)) }
