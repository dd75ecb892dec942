package window

import "unsafe"

// Shared is rank's part of the window if its memory is mapped in this process, as that of
// this rank always is, and of ranks on one host mostly: the program then reads and writes it
// by the processor, without calls. It is valid as long as Local. It is false for a rank that
// has failed, whose memory may have been left half written, and may be retried at every use:
// it costs about what a put of 8 bytes does, and allocates nothing.
//
// Processor accesses are no operations: epochs do not check them and Flush does not wait for
// them. What several ranks use at a time they access by sync/atomic, which has one order over
// all processes that map the memory. On windows made by Allocate with [SingleElement] the
// accumulate family of 4 and 8 byte integers is in that order too, from whatever rank it
// comes; on others it is done under locks that processor accesses do not take. Where network
// cards do it whose atomics are not coherent with the processor's (see [CardAtomics]), Shared
// is false for every rank.
//
// A plain store is seen by whoever reads, by atomics or operations, a value that was written
// after it by an atomic of this rank; and plain loads that follow an atomic which has read
// what was flushed, or stored so, see what was written before that.
func (w *Window[T]) Mapped(rank int) ([]T, bool) {
	memory, ok := w.view.shared(rank)
	if !ok {
		return nil, false
	}
	return unsafe.Slice((*T)(memory), w.view.targets[rank].count), true
}

// shared is the address of rank's part. Sound because memory is that of as many elements as
// the target counts, which starts where elements of the view's kind may (see elements).
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

// sharedFirst is shared of a rank that was not asked for before, or that is not mapped.
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
