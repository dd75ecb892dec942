package registration

import "unsafe"

// mostCovered bounds what is registered for a buffer, in lengths of the buffer. Without it, buffers that slide over a long array
// would have more of it registered each time.
const mostCovered = 16

// cover returns the memory to register for all of memory, and of the kept regions that overlap it, unless that is much more. It
// is part of the same object.
func (k *cache) cover(memory []byte) []byte {
	k.mu.Lock()
	from := k.address(memory)
	to := from + uint64(len(memory))
	k.policy.Prune(from, to, (*kept).alive)
	first, last := k.policy.Cover(from, to)
	if k.policy.AnyEnded() {
		k.untidy.Store(true)
	}
	k.mu.Unlock()
	if most := uint64(mostCovered * len(memory)); last-first > min(most, k.card.registry.config.Kept.Bytes) {
		return memory
	}
	// Sound because first is within the object of memory, which memory keeps alive: the regions that are left after Prune and
	// overlap memory have its object. Without such regions, first is the address of memory.
	return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(memory)), -int(from-first))), last-first)
}
