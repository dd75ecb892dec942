package world

import (
	"unsafe"
)

// cover is what to register to have all of memory, and of what is kept that overlaps it. That is of the
// same object, which memory keeps alive: so its first byte is in there.
func (o *origins) cover(memory []byte) []byte {
	o.mu.Lock()
	from := o.address(memory)
	to := from + uint64(len(memory))
	o.policy.Prune(from, to, (*kept).alive)
	first, last := o.policy.Cover(from, to)
	o.mu.Unlock()
	// Sound because first is in the object of memory, or its own address.
	return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(memory)), -int(from-first))), last-first)
}
