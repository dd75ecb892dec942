package world

import "unsafe"

// bytesOf is the memory of elements. Sound because elementSize has checked that T
// has no pointers.
func bytesOf[T any](elements []T) []byte {
	if len(elements) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(elements))), len(elements)*int(unsafe.Sizeof(elements[0])))
}
