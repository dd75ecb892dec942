package hashtable

import (
	"context"
	"sync/atomic"

	"github.com/onesided/rma/window"
)

// partBuckets is the number of buckets whose keys are moved together.
const partBuckets = 256

// shortKey is the number of bytes of a record that are first read for its key.
const shortKey = 64

// A part is a number of slots of an owner's index whose keys are moved.
type part struct {
	table  *Table
	owner  int
	mapped bool
	memory shared
	// start is the displacement of the first slot. slots are the last known values, and words the results of a
	// compare-and-swap.
	start        int
	slots, words []uint64
}

// movePart moves the keys of some buckets to the next index. Other ranks may do the same at the same time. The caller
// is announced. For each slot:
//
//   - An empty slot becomes closed, and the slot of a deleted key moved.
//   - The slot of a live key becomes frozen: its value does not change any more.
//   - The value of a frozen slot is copied to the next index, if the key is not there yet.
//   - Then the slot becomes moved, and operations look for the key in the next index.
//
// movePart finishes what it has begun, unless the owner fails.
func (t *Table) movePart(ctx context.Context, owner int, from, to index, number int) error {
	ctx = context.WithoutCancel(ctx)
	first := number * partBuckets
	n := min(partBuckets, from.buckets-first) * bucketSlots
	p := part{table: t, owner: owner, start: from.place(first, 0, 0), slots: make([]uint64, n), words: make([]uint64, n)}
	p.memory, p.mapped = t.sharedOf(owner)
	if err := p.read(ctx); err != nil {
		return err
	}
	if err := p.freeze(ctx); err != nil {
		return err
	}
	if err := p.copy(ctx, to); err != nil {
		return err
	}
	return p.swap(ctx, func(s slot) slot {
		if s == slotClosed || s == slotMoved {
			return s
		}
		return slotMoved
	})
}

func (p *part) read(ctx context.Context) error {
	if p.mapped {
		for i := range p.slots {
			p.slots[i] = atomic.LoadUint64(&p.memory.words[p.start+i])
		}
		return nil
	}
	if err := p.table.words.GetAccumulate(window.NoOp, nil, p.slots, p.owner, p.start); err != nil {
		return err
	}
	return p.table.words.Flush(ctx, p.owner)
}

// swap sets every slot that still has its known value to becomes of that value. It notes the values of the others.
func (p *part) swap(ctx context.Context, becomes func(s slot) slot) error {
	for i, s := range p.slots {
		to := uint64(becomes(slot(s)))
		p.words[i] = s
		if to == s {
			continue
		}
		if p.mapped {
			if word := &p.memory.words[p.start+i]; !atomic.CompareAndSwapUint64(word, s, to) {
				p.words[i] = atomic.LoadUint64(word)
			}
		} else if err := p.table.words.CompareAndSwap(s, to, &p.words[i], p.owner, p.start+i); err != nil {
			return err
		}
	}
	if !p.mapped {
		if err := p.table.words.Flush(ctx, p.owner); err != nil {
			return err
		}
	}
	for i, was := range p.words {
		if was == p.slots[i] {
			p.slots[i] = uint64(becomes(slot(was)))
		} else {
			p.slots[i] = was
		}
	}
	return nil
}

// freeze makes every slot frozen, closed or moved.
func (p *part) freeze(ctx context.Context) error {
	var dropped []retired
	for again := true; again; {
		before := append([]uint64(nil), p.slots...)
		if err := p.swap(ctx, p.frozen); err != nil {
			return err
		}
		again = false
		for i, s := range p.slots {
			was := slot(before[i])
			switch {
			case !slot(s).frozen():
				again = true
			case slot(s) == slotMoved && p.words[i] == before[i] && was != slotMoved && p.table.check(was) == nil:
				dropped = append(dropped, retired{owner: p.owner, piece: piece{was.place(), pieceWords(was.words())}})
			}
		}
	}
	p.table.addRetired(dropped)
	return nil
}

// frozen returns the first value that a slot takes. It drops a value that no table has written.
func (p *part) frozen(s slot) slot {
	switch {
	case s == 0:
		return slotClosed
	case s.frozen():
		return s
	case !s.live() || p.table.check(s) != nil:
		return slotMoved
	}
	return s | slotFrozen
}

// copy makes the next index refer to the records of all frozen slots.
func (p *part) copy(ctx context.Context, to index) error {
	records, err := p.records(ctx)
	if err != nil {
		return err
	}
	b := p.table.batches.Get().(*Batch)
	for i, record := range records {
		if record == nil {
			continue
		}
		s := slot(p.slots[i])
		keyLength, _, err := s.lengths(record)
		if err != nil {
			continue
		}
		n := b.queue(opMove, string(record[lengthsBytes:][:keyLength]), nil, 0)
		op := &b.ops[n]
		op.home = p.table.home(op.key)
		op.home.owner = p.owner
		op.next, op.at, op.kept = true, to, s
		b.active = append(b.active, int32(n))
	}
	b.proceed(ctx)
	for i := range b.ops {
		if err == nil {
			err = b.ops[i].err
		}
	}
	b.notes, b.isShort, b.active = b.notes[:0], false, b.active[:0]
	p.table.release(b)
	return err
}

// records reads the records of the frozen slots from their words of lengths to the ends of their keys. The elements
// of other slots are nil.
func (p *part) records(ctx context.Context) ([][]byte, error) {
	t := p.table
	records := make([][]byte, len(p.slots))
	for i, s := range p.slots {
		s := slot(s)
		if s == slotClosed || s == slotMoved {
			continue
		}
		start, length := (t.recordStart()+s.place())*wordBytes+s.prefix(), s.recordBytes()
		if p.mapped {
			records[i] = p.memory.bytes[start:][:length]
			continue
		}
		records[i] = make([]byte, min(length, shortKey), length)
		if err := t.bytes.Get(records[i], p.owner, start); err != nil {
			return nil, err
		}
	}
	if p.mapped {
		return records, nil
	}
	if err := t.words.Flush(ctx, p.owner); err != nil {
		return nil, err
	}
	for i, record := range records {
		if record == nil {
			continue
		}
		s := slot(p.slots[i])
		keyLength, _, err := s.lengths(record)
		if read := len(record); err == nil && lengthsBytes+keyLength > read {
			records[i] = record[:lengthsBytes+keyLength]
			start := (t.recordStart()+s.place())*wordBytes + s.prefix()
			if err := t.bytes.Get(records[i][read:], p.owner, start+read); err != nil {
				return nil, err
			}
		}
	}
	return records, t.words.Flush(ctx, p.owner)
}
