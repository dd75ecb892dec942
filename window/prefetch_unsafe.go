package window

import "unsafe"

// Prefetch has the processor begin to fetch the cache line of an element, which is to be read soon, and does not wait
// for it. Who looks for elements all over memory that it maps (see [Window.Shared]) waits for one at a time otherwise.
// Where this module has no instruction for it, on other processors than amd64, it does nothing.
func Prefetch[T any](element *T) { prefetchRead(unsafe.Pointer(element)) }

// PrefetchWrite is Prefetch for an element that is to be written to: other processors lose its line.
func PrefetchWrite[T any](element *T) { prefetch(unsafe.Pointer(element)) }
