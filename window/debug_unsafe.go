package window

import "unsafe"

// extentOf is the addresses of memory, of some bytes. They stay its own as long as somebody holds it, which is not on a
// stack: whoever notes an extent keeps the memory, too.
func extentOf(memory []byte) extent {
	first := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(memory))))
	return extent{first, first + uint64(len(memory))}
}
