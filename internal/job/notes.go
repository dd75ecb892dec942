package job

import (
	"context"
	"fmt"
)

// What is short ranks that map each other's memory tell each other by notes: a line each, stored where the receiver
// looks, with the number that it waits for stored last. So a message of a collective that fits is neither packed nor
// looked for, and the line that tells that it has come brings it.
//
// A rank has a file for the notes of each other in its block, of noteSlots, taken in turn. Its owner tells how many
// it has read in the notes that it sends back, or where it sends few, in the file. The sender goes on when it knows
// that the slot is free. Notes of a pair are apart from what else goes between them: both know by its length which way
// a message goes, and so which is next on each.
//
// A sender that finds all slots taken waits for the file alone, and reads none of the other's notes meanwhile, though
// one of them may tell that a slot is free. So collectives keep to this: where a rank sends another noteSlots notes and
// more without a message from it between, the other sends it none between those that it receives. Then the other's file
// is less than noteSlots/2 behind what it has read, and the wait ends. All that there are do: of a pair's messages in
// one call that go both ways, each rank receives as many as it has sent before it sends the next.

const (
	// noteSlots is how many notes a rank may send that another has not read.
	noteSlots = 4
	// mostNoted is how many ranks there may be, each of which has a file for each other.
	mostNoted = 64
)

// A correspondence is that of this rank with another. It belongs to the goroutine that is in a collective.
type correspondence struct {
	// theirs is this rank's file in the other's block, mine the other's in this rank's.
	theirs, mine *noteFile
	// sent is the number of the last note, known that of the last that is known to have been read; read
	// that of the last that was read here, told the last of those that the other can know of.
	sent, known, read, told uint32
}

// notesBytes is how long the files of a block are.
func notesBytes(size int) int {
	if size > mostNoted {
		return 0
	}
	return noteFileBytes * size
}

// noted tells whether so many bytes to or from a rank go by a note.
func (w *World) noted(rank, bytes int) bool {
	return rank != nobody && bytes <= mostInNote && w.notes != nil && w.maps(rank)
}

// correspond gives the correspondence with a rank.
func (r *round) correspond(ctx context.Context, rank int) (*correspondence, error) {
	w := r.w
	c := &w.notes[rank]
	if c.theirs != nil {
		return c, nil
	}
	if err := r.approach(ctx, rank); err != nil {
		return nil, err
	}
	block, err := w.blockOf(rank)
	if err != nil {
		return nil, w.post.failed(r.op, r.signature.number, &linkageError{rank, err})
	}
	c.theirs, c.mine = fileOver(block, w.size, w.rank), fileOver(w.block, w.size, rank)
	return c, nil
}

// sendNote sends a rank what fits a note.
func (r *round) sendNote(ctx context.Context, to int, data []byte) error {
	c, err := r.correspond(ctx, to)
	if err != nil {
		return err
	}
	w, number := r.w, c.sent+1
	if free := number - noteSlots; int32(free-c.known) > 0 {
		if read := &c.theirs.read; !reached(read, free) {
			if err := w.barrier.hear(ctx, r.op, read, free, to); err != nil {
				return err
			}
		}
		if err := r.learn(c, to, c.theirs.read.Load()); err != nil {
			return err
		}
	}
	w.RaceAcquire()
	slot := &c.theirs.slots[number%noteSlots]
	copy(slot.data[:], data)
	w.Copied(len(data))
	slot.history, slot.read = r.history, c.read
	c.told, c.sent = c.read, number
	w.RaceRelease()
	slot.number.Store(number)
	w.Ring(to)
	return nil
}

// learn notes that a rank has told the number of the last note that it has read.
func (r *round) learn(c *correspondence, rank int, read uint32) error {
	if int32(read-c.known) <= 0 {
		return nil
	}
	if read-c.known > c.sent-c.known {
		return r.w.post.failed(r.op, r.signature.number, &boxError{rank, fmt.Errorf("%w: it has read note %d of %d", ErrMessage, read, c.sent)})
	}
	c.known = read
	return nil
}

// readNote reads the next note of a rank, which is added where add tells.
func (r *round) readNote(ctx context.Context, from int, data []byte, add *addition) error {
	c, err := r.correspond(ctx, from)
	if err != nil {
		return err
	}
	w, number := r.w, c.read+1
	slot := &c.mine.slots[number%noteSlots]
	if !reached(&slot.number, number) {
		if err := w.barrier.hear(ctx, r.op, &slot.number, number, from); err != nil {
			return err
		}
	}
	w.RaceAcquire()
	if slot.history != r.history {
		return w.unlike(r.op, from)
	}
	if add != nil {
		add.add(data, slot.data[:len(data)], 0)
	} else {
		copy(data, slot.data[:])
	}
	w.Copied(len(data))
	c.read = number
	if err := r.learn(c, from, slot.read); err != nil {
		return err
	}
	if c.read-c.told >= noteSlots/2 {
		c.told = c.read
		w.RaceRelease()
		c.mine.read.Store(c.read)
		w.Ring(from)
	}
	return nil
}
