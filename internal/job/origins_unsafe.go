package job

import "unsafe"

// mostCovered is how many times as long as a buffer is what is registered for it, at most: windows that
// slide over a long array would have ever more of it registered.
const mostCovered = 16

// cover is what to register to have all of memory, and of what is kept that overlaps it, unless that is
// much more. It is of the same object, which memory keeps alive: so its first byte is in there.
func (o *origins) cover(memory []byte) []byte {
	o.mu.Lock()
	from := o.address(memory)
	to := from + uint64(len(memory))
	o.policy.Prune(from, to, (*kept).alive)
	first, last := o.policy.Cover(from, to)
	if o.policy.AnyEnded() {
		o.untidy.Store(true)
	}
	o.mu.Unlock()
	if most := uint64(mostCovered * len(memory)); last-first > min(most, o.world.settings.kept.Bytes) {
		return memory
	}
	// Sound because first is in the object of memory, or its own address.
	return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(memory)), -int(from-first))), last-first)
}
