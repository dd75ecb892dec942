package window

import (
	"math/bits"
	"sync/atomic"
	"unsafe"
)

// bytesOf is the memory of elements. Sound because an Element has no pointers.
func bytesOf[T Element](memory []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(memory))), len(memory)*sizeOf[T]())
}

// elements is memory as elements. Sound because window memory starts at a page, or
// is the program's, whose alignment create and View know,
// and every bit pattern is a value of every Element.
func elements[T Element](memory []byte) []T {
	return unsafe.Slice(first[T](memory), len(memory)/sizeOf[T]())
}

// first is the address of the first element of memory, never nil: an empty window
// has an address too, that nothing is read from. Sound as elements is.
func first[T Element](memory []byte) *T {
	if len(memory) == 0 {
		return new(T)
	}
	return (*T)(unsafe.Pointer(unsafe.SliceData(memory)))
}

// sizeOf is the size of an element in bytes.
func sizeOf[T Element]() int { return int(unsafe.Sizeof(*new(T))) }

// unescaped hides p from escape analysis, so that the program's operands stay on
// its stack. Sound because what is passed so is in frames of the calling goroutine only,
// as a pointer, so that a stack that grows or shrinks meanwhile takes it along. It must
// not come, not even during the call, into an object on the heap, to another goroutine,
// or to a method of an interface, which may do either: what goes there is kept, or a
// copy. While x alone holds it there must be no call, in which the collector does not see it and a
// stack that grows leaves it behind: what the race detector brings would be some.
//
//go:norace
//go:nocheckptr
func unescaped(p unsafe.Pointer) unsafe.Pointer {
	x := uintptr(p)
	return *(*unsafe.Pointer)(unsafe.Pointer(&x))
}

// kept is the memory of the program's elements, for an operation that may go on
// after its call.
func kept[T Element](s []T) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(s)) }

// keptElement is the memory of one element.
func keptElement[T Element](element *T) unsafe.Pointer { return unsafe.Pointer(element) }

// address is the memory of elements, for an operation that reads them, or copies them,
// in its call and its own goroutine; see unescaped.
func address[T Element](s []T) unsafe.Pointer {
	return unescaped(unsafe.Pointer(unsafe.SliceData(s)))
}

// addressOf is the memory of one element.
func addressOf[T Element](element *T) unsafe.Pointer { return unescaped(unsafe.Pointer(element)) }

// stripes are the stripe locks of one rank's window.
type stripes struct {
	base  unsafe.Pointer
	shift uint8
	// far: accumulates of one element are held back.
	far bool
}

func stripesOf(c *control) stripes {
	return stripes{base: unsafe.Add(c.base, c.stripesAt), shift: c.stripeShift}
}

// at is the lock of the stripe that holds the window's byte at offset. Sound
// because the caller has checked offset against the window, for whose length the
// layout has a stripe at every offset.
func (s *stripes) at(offset uint64) *atomic.Uint32 {
	return (*atomic.Uint32)(unsafe.Add(s.base, offset>>(s.shift&63)*lineBytes))
}

// alignmentOf is the largest power of two, up to a page, that memory's address is a
// multiple of.
func alignmentOf(memory []byte) int {
	if len(memory) == 0 {
		return 4096
	}
	return 1 << min(12, bits.TrailingZeros64(uint64(uintptr(unsafe.Pointer(unsafe.SliceData(memory))))))
}

// publish orders every store of this goroutine before its later loads, for all
// processes that share the memory. Completion at the target needs that: of two
// ranks that each put, flush and then get what the other put, one must see it.
//
// A sequentially consistent store to a private word does it on amd64, where it is a
// locked instruction, for less than a store to a shared word. On arm64 it is a store
// with release order, which comes after all stores before it, and the load a load with
// acquire order, which comes after every such store and before all loads after it. A
// swap would not do: where the processor has none, it is an exclusive load and store
// (LDAXR, STLXR), and the loads after it may overtake the store.
func publish() {
	var private atomic.Uint32
	private.Store(1)
	private.Load()
}
