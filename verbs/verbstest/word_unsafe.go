package verbstest

import (
	"fmt"
	"unsafe"
)

// word returns the 8 bytes of memory at offset, for sync/atomic. It is sound because the slice expression checks the
// range, the alignment is checked here, and a pointer into the slice's memory keeps a slice of the Go heap alive.
func word(memory []byte, offset int) *uint64 {
	p := unsafe.Pointer(unsafe.SliceData(memory[offset : offset+8]))
	if uintptr(p)%8 != 0 {
		panic(fmt.Sprintf("verbstest: word at offset %d is not aligned", offset))
	}
	return (*uint64)(p)
}

// aligned reports whether memory begins at a multiple of n. The address is only compared.
func aligned(memory []byte, n int) bool {
	return uintptr(unsafe.Pointer(unsafe.SliceData(memory)))%uintptr(n) == 0
}
