package main

import "unsafe"

// wordsOf is memory as words. Sound because what a device allocates begins at a page.
func wordsOf(memory []byte) []int64 {
	return unsafe.Slice((*int64)(unsafe.Pointer(unsafe.SliceData(memory))), len(memory)/8)
}
