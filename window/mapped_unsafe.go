package window

import "unsafe"

// Mapped returns rank's part of the window, and true if the memory of the part is mapped in this process. The part of
// this rank is mapped, and so are most parts of ranks on the same host. The program loads and stores in the slice
// without calls. The slice is valid as long as that of Local.
//
// Mapped returns false for a rank that has failed, whose memory may be half written. It may be called for every access:
// it takes about as long as a Put of 8 bytes, and does not allocate.
//
// Loads and stores are not operations: epochs do not check them, and Flush does not wait for them. Ranks that use
// memory at the same time must access it by sync/atomic. Its operations have one order over all processes that map the
// memory. On windows of [Allocate] with [SingleElement] operations of the accumulate family on integers of 4 and 8
// bytes are part of that order, from whichever rank they come. On other windows they use locks that loads and stores do
// not take.
//
// If network cards execute the accumulate family, and their atomics are not coherent with those of processors (see
// [CardAtomics]), Mapped returns false for every rank.
//
// To publish a plain store, store another value atomically afterwards. A rank that reads that value, atomically or by an
// operation, also sees the plain store. Plain loads after an atomic load see what was written before the loaded value,
// if that value was stored atomically or has been flushed.
func (w *Window[T]) Mapped(rank int) ([]T, bool) {
	v := w.of()
	memory, ok := v.shared(rank)
	if !ok {
		return nil, false
	}
	return unsafe.Slice((*T)(memory), v.targets[rank].count), true
}

// shared returns the address of rank's part, and false if it is not mapped. Sound because the memory has as many
// elements as the target counts. Its address is aligned for elements of the view's kind: see elements.
func (v *view) shared(rank int) (unsafe.Pointer, bool) {
	if uint(rank) >= uint(len(v.targets)) {
		return nil, false
	}
	memory := v.targets[rank].memory.Load()
	if memory == nil {
		return v.sharedFirst(rank)
	}
	return unsafe.Pointer(memory), v.cards != cardsAlone
}

// sharedFirst is shared for a rank that is used for the first time or is not mapped.
func (v *view) sharedFirst(rank int) (unsafe.Pointer, bool) {
	if v.closed.Load() || v.cards == cardsAlone || !v.world.Mapped(rank) || v.world.Failure(rank) != nil {
		return nil, false
	}
	p, err := v.peer(rank)
	if err != nil || p.data == nil {
		return nil, false
	}
	t := &v.targets[rank]
	v.reveal(t, p, rank)
	memory := t.data.Load()
	return unsafe.Pointer(memory), memory != nil
}
