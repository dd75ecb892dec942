package hashtable

import (
	"context"
	"encoding/binary"
	"errors"
	"math/bits"
	"sync/atomic"

	"github.com/onesided/rma/window"
)

// takeBlock returns a block of an owner for an index of some level. The block is zero and belongs to this rank alone.
// line is -1 if there is no room.
func (t *Table) takeBlock(ctx context.Context, owner, level int) (line int, err error) {
	ctx = context.WithoutCancel(ctx)
	if level >= mostLevels || t.buckets<<level > mostBuckets {
		return -1, nil
	}
	if line, err = t.takeSpare(ctx, owner, level); err != nil || line >= 0 {
		if err == nil {
			err = t.clearBlock(ctx, owner, line, level)
		}
		return line, err
	}
	words := blockWords(t.buckets << level)
	tail, err := t.loadWord(ctx, owner, tailWord)
	for err == nil {
		// The memory after the tail has never been used.
		place := int(min(tail, uint64(t.recordWords))+lineWords-1) / lineWords * lineWords
		line := (t.recordStart() + place - headerWords) / lineWords
		if place+words > t.recordWords || line >= 1<<controlLineBits {
			return -1, nil
		}
		known := tail
		if tail, err = t.swapWord(ctx, owner, tailWord, known, uint64(place+words)); err == nil && tail == known {
			t.spaces[owner].saw(place + words)
			return line, nil
		}
	}
	return -1, err
}

// takeSpare takes the free block of a level, or returns -1 if there is none.
func (t *Table) takeSpare(ctx context.Context, owner, level int) (line int, err error) {
	at := blockStart + level
	known, err := t.loadWord(ctx, owner, at)
	for err == nil && known != 0 {
		if known > 1<<controlLineBits || t.indexOf(newControl(int(known-1), level, 0)).buckets == 0 {
			// No table has written that value.
			break
		}
		was, err := t.swapWord(ctx, owner, at, known, 0)
		if err != nil {
			return -1, err
		}
		if was == known {
			return int(known - 1), nil
		}
		known = was
	}
	return -1, err
}

// clearBlock sets a block to zero.
func (t *Table) clearBlock(ctx context.Context, owner, line, level int) error {
	start, words := headerWords+line*lineWords, blockWords(t.buckets<<level)
	zero := make([]uint64, min(words, mostCleared))
	for done := 0; done < words; done += len(zero) {
		if err := t.putWords(zero[:min(len(zero), words-done)], owner, start+done); err != nil {
			return err
		}
	}
	return t.words.Flush(ctx, owner)
}

// putWords puts words where an index may have been.
func (t *Table) putWords(words []uint64, owner, at int) error {
	if !raced {
		return t.words.Put(words, owner, at)
	}
	if memory, ok := t.words.Mapped(owner); ok {
		for i, word := range words {
			atomic.StoreUint64(&memory[at+i], word)
		}
		return nil
	}
	// The window was made with SingleElement.
	for i := range words {
		err := t.words.Accumulate(window.Replace, words[i:i+1], owner, at+i)
		if errors.Is(err, window.ErrPromise) {
			// A window with CardAtomics has no Replace: it returned an error for the first word.
			return t.addWords(words, owner, at)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// addWords sets words by Sum: it adds the differences from the present values. No other rank writes these words
// meanwhile.
func (t *Table) addWords(words []uint64, owner, at int) error {
	was := make([]uint64, len(words))
	if err := t.words.GetAccumulate(window.NoOp, nil, was, owner, at); err != nil {
		return err
	}
	if err := t.words.Flush(context.Background(), owner); err != nil {
		return err
	}
	for i, word := range words {
		if err := t.words.Accumulate(window.Sum, []uint64{word - was[i]}, owner, at+i); err != nil {
			return err
		}
	}
	return nil
}

// storeWords stores a record, a number of whole words, atomically word by word.
func storeWords(to []uint64, record []byte) {
	for i := 0; i*wordBytes < len(record); i++ {
		atomic.StoreUint64(&to[i], binary.NativeEndian.Uint64(record[i*wordBytes:]))
	}
}

// mostCleared is the number of words that are cleared at once.
const mostCleared = 1 << 13

// giveBlock stores a block that no operation knows; place is a line. An owner has one free block of each level. This
// rank uses any further one for records. If giveBlock fails the block is lost.
func (t *Table) giveBlock(ctx context.Context, owner int, p piece) {
	ctx = context.WithoutCancel(ctx)
	level := bits.Len(uint((p.words-lineWords)/bucketSlots/t.buckets)) - 1
	if was, err := t.swapWord(ctx, owner, blockStart+level, 0, uint64(p.place)+1); err == nil && was != 0 {
		t.keepBlock(owner, p)
	}
}

// keepBlock makes this rank use a block for records. The block of the first index lies before the record space and
// cannot be used so.
func (t *Table) keepBlock(owner int, p piece) (kept bool) {
	place := headerWords + p.place*lineWords - t.recordStart()
	if place >= 0 {
		t.spaces[owner].keep(piece{place, p.words})
	}
	return place >= 0
}

// breakBlock takes a free block that is too small for an index now, for records of words words.
func (t *Table) breakBlock(ctx context.Context, owner, words int) (taken bool, err error) {
	v, err := t.readView(ctx, owner)
	for level := 0; err == nil && level < v.current.level(); level++ {
		block := blockWords(t.buckets << level)
		if block < words {
			continue
		}
		var line int
		if line, err = t.takeSpare(ctx, owner, level); line >= 0 && t.keepBlock(owner, piece{line, block}) {
			return true, nil
		}
	}
	return false, err
}
