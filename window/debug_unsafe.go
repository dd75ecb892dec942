package window

import "unsafe"

// extentOf returns the addresses of memory, which is not empty. The addresses stay those of the memory as long as it is
// kept and not on a stack. So a record with an extent keeps the memory, too.
func extentOf(memory []byte) extent {
	first := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(memory))))
	return extent{first, first + uint64(len(memory))}
}
