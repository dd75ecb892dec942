package window

import (
	"math/bits"
	"sync/atomic"
	"unsafe"
)

// bytesOf returns the memory of elements. Sound because an Element has no pointers.
func bytesOf[T Element](memory []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(memory))), len(memory)*sizeOf[T]())
}

// elements returns memory as elements. Sound because window memory starts at a page, Create and View check the
// alignment of other memory, and every bit pattern is a valid Element.
func elements[T Element](memory []byte) []T {
	return unsafe.Slice(first[T](memory), len(memory)/sizeOf[T]())
}

// first returns the address of the first element of memory, never nil. An empty window has an address, too, which is
// not accessed. Sound as elements is.
func first[T Element](memory []byte) *T {
	if len(memory) == 0 {
		return new(T)
	}
	return (*T)(unsafe.Pointer(unsafe.SliceData(memory)))
}

// sizeOf returns the size of an element in bytes.
func sizeOf[T Element]() int { return int(unsafe.Sizeof(*new(T))) }

// unescaped hides p from escape analysis, so that the program's operands stay on its stack.
//
// Sound because the result is only in frames of the calling goroutine, as a pointer. A stack that grows or shrinks
// meanwhile takes it along. It must not be stored in an object on the heap, even during the call. Nor may it be passed to
// another goroutine, or to a method of an interface, which may do either. These get memory that is kept, or a copy.
//
// While only x has the address there must be no call: the collector does not see x, and a stack that grows does not
// update it. The race detector would add calls.
//
//go:norace
//go:nocheckptr
func unescaped(p unsafe.Pointer) unsafe.Pointer {
	x := uintptr(p)
	return *(*unsafe.Pointer)(unsafe.Pointer(&x))
}

// kept returns the memory of the program's elements, for an operation that may continue after its call.
func kept[T Element](s []T) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(s)) }

// keptElement is kept for one element.
func keptElement[T Element](element *T) unsafe.Pointer { return unsafe.Pointer(element) }

// address returns the memory of elements, for an operation that reads or copies them in its call and its own goroutine:
// see unescaped.
func address[T Element](s []T) unsafe.Pointer {
	return unescaped(unsafe.Pointer(unsafe.SliceData(s)))
}

// addressOf is address for one element.
func addressOf[T Element](element *T) unsafe.Pointer { return unescaped(unsafe.Pointer(element)) }

// stripes has the stripe locks of one rank's window.
type stripes struct {
	base  unsafe.Pointer
	shift uint8
	// far is set if accumulates of one element are held.
	far bool
}

func stripesOf(c *control) stripes {
	return stripes{base: unsafe.Add(c.base, c.stripesAt), shift: c.stripeShift}
}

// at returns the lock of the stripe that has the window's byte at offset. Sound because the caller has compared offset
// with the window's length, and the layout has a stripe for every smaller offset.
func (s *stripes) at(offset uint64) *atomic.Uint32 {
	return (*atomic.Uint32)(unsafe.Add(s.base, offset>>(s.shift&63)*lineBytes))
}

// alignmentOf returns the largest power of two, at most a page, that divides memory's address.
func alignmentOf(memory []byte) int {
	if len(memory) == 0 {
		return 4096
	}
	return 1 << min(12, bits.TrailingZeros64(uint64(uintptr(unsafe.Pointer(unsafe.SliceData(memory))))))
}

// publish orders every store of this goroutine before its later loads, for all processes that share the memory.
// Completion at the target needs that. If each of two ranks puts, flushes and then gets what the other has put, at
// least one of them must see it.
//
// On amd64 a sequentially consistent store to a private word does this: it is a locked instruction, and takes less time
// than a store to a shared word. On arm64 the store has release order, so it comes after all earlier stores. The load
// has acquire order, so it comes after the store and before all later loads. A swap would not do there. Without an
// instruction for it, it is an exclusive load and store (LDAXR, STLXR), and later loads may overtake the store.
func publish() {
	var private atomic.Uint32
	private.Store(1)
	private.Load()
}
