package job

import "unsafe"

// bytesOf is the memory of elements. Sound because elementOf has checked that T has
// no pointers.
func bytesOf[T any](elements []T) []byte {
	if len(elements) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(elements))), len(elements)*int(unsafe.Sizeof(elements[0])))
}

// elementsOf is bytesOf the other way round: n elements in memory that is aligned to 8. It is sound as
// scratch is; slicing looks that they are within.
func elementsOf[T any](memory []byte, n int) []T {
	var element T
	if memory = memory[:n*int(unsafe.Sizeof(element))]; len(memory) == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(memory))), n)
}

// scratch is memory of the round for n elements; a call that goes on with another
// finds there what that has left. It is asked for once in a call. Sound because
// elementOf has checked that T has no pointers, and no such type is aligned to more
// than 8 bytes.
func scratch[T any](r *round, n int) []T {
	if n == 0 {
		return nil
	}
	var element T
	words := max(1, (n*int(unsafe.Sizeof(element))+7)/8)
	if words > len(r.memory) {
		r.memory = make([]uint64, words)
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(r.memory))), n)
}
