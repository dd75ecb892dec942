package main

import "unsafe"

// wordsOf returns memory as words. It is sound because memory of a device begins at a page boundary.
func wordsOf(memory []byte) []int64 {
	return unsafe.Slice((*int64)(unsafe.Pointer(unsafe.SliceData(memory))), len(memory)/8)
}
