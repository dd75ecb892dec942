package job

import "context"

// Ranks that share cores and map each other's memory broadcast what is short by the board in the block of the root:
// the root writes it there, wakes those that sleep, and goes on; each of the others reads it when it runs, however
// late. So nobody has to run before another but the root, and each once.
//
// A board has boardSlots, taken by the numbers of calls in turn. Before a root uses one again it waits until all have
// read what was there: so it is no more than so many calls ahead of those who are slow.

const (
	boardSlots = 4
	// mostOnBoard is how many bytes a slot has room for.
	mostOnBoard = 96
	// mostAtBoard is how many ranks there may be. Of more some go to sleep before it is their turn to run, and
	// a root that wakes dozens is slower than a tree in which each wakes a few.
	mostAtBoard = 32
	// refreshed is how often, in calls, slots that are not used get a number that is not so old as to look new.
	refreshed = 1 << 30
)

// boardBytes is how long a board is.
func boardBytes(size int) int {
	if size > mostAtBoard {
		return 0
	}
	return boardSlots * boardSlotBytes
}

// onBoard tells whether so many bytes are broadcast by a board.
func (w *World) onBoard(bytes int) bool {
	return bytes <= mostOnBoard && w.size > 1 && w.size <= mostAtBoard && w.atTable(min(bytes, placeBytes))
}

// broadcastOnBoard is Broadcast by the board.
func (r *round) broadcastOnBoard(ctx context.Context, root int, data []byte) error {
	w, m, number := r.w, r.w.barrier, r.signature.number
	if err := r.approach(ctx, root); err != nil {
		return err
	}
	block, err := w.blockOf(root)
	if err != nil {
		return w.post.failed(r.op, number, &linkageError{root, err})
	}
	slot := boardOver(block, w.size, number)
	if w.rank != root {
		if !reached(&slot.number, number) {
			if err := m.hear(ctx, r.op, &slot.number, number, root); err != nil {
				return err
			}
		}
		w.RaceAcquire()
		if slot.history.Load() != r.history {
			return w.unlike(r.op, root)
		}
		copy(data, slot.data[:])
		w.Copied(len(data))
		w.RaceRelease()
		if slot.readers.Add(^uint32(0)) == 0 {
			slot.freed.Store(number)
			w.Ring(root)
		}
		return nil
	}
	if last := slot.number.Load(); !reached(&slot.freed, last) {
		if err := m.hear(ctx, r.op, &slot.freed, last, fromReaders); err != nil {
			return err
		}
	}
	w.RaceAcquire()
	copy(slot.data[:], data)
	w.Copied(len(data))
	slot.history.Store(r.history)
	slot.readers.Store(uint32(w.size - 1))
	w.RaceRelease()
	slot.number.Store(number)
	for other := 1; other < w.size; other++ {
		w.Ring(r.absolute(other, root))
	}
	return nil
}

// refresh keeps the numbers of this rank's slots less than half of all numbers behind that of a call.
func (w *World) refresh(number uint32) {
	if w.size > mostAtBoard {
		return
	}
	for i := range uint32(boardSlots) {
		if slot := boardOver(w.block, w.size, i); slot.freed.Load() == slot.number.Load() {
			// All have read what was there, or nothing was, and none looks for a number before this one.
			slot.number.Store(number - 1)
			slot.freed.Store(number - 1)
		}
	}
}
