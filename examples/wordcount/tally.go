package main

import (
	"hash/maphash"
	"iter"
)

// A tally counts words in this rank. It is a hash table that only grows, until it is
// full and emptied as a whole.
type tally struct {
	seed maphash.Seed
	// index is open addressing by linear probing. A place has the high half of the
	// word's hash, and the number of its entry plus 1; 0 is empty.
	index   []uint64
	entries []entry
	// text has the words one after the other.
	text []byte
	most int
}

type entry struct {
	at, length uint32
	count      uint64
}

const (
	// tallyWords is how many distinct words a tally has when it is full: so many
	// that frequent words go to the shared table seldom, and so few that the
	// tally stays near the processor.
	tallyWords = 1 << 17
	// tallyText is how many bytes they have at most, about.
	tallyText = 8 << 20
)

// newTally makes a tally for at most so many distinct words.
func newTally(words int) *tally {
	places := 1
	for places < 2*words {
		places *= 2
	}
	return &tally{seed: maphash.MakeSeed(), index: make([]uint64, places), most: words}
}

// add counts a word and tells whether the tally is full and has to be emptied before the
// next.
func (t *tally) add(word []byte) (full bool) {
	hash := maphash.Bytes(t.seed, word)
	mask := uint64(len(t.index) - 1)
	for place := hash & mask; ; place = (place + 1) & mask {
		found := t.index[place]
		if found == 0 {
			t.index[place] = hash&^(1<<32-1) | uint64(len(t.entries)+1)
			t.entries = append(t.entries, entry{uint32(len(t.text)), uint32(len(word)), 1})
			t.text = append(t.text, word...)
			return len(t.entries) >= t.most || len(t.text) >= tallyText
		}
		if (found^hash)>>32 != 0 {
			continue
		}
		e := &t.entries[uint32(found)-1]
		if string(t.text[e.at:e.at+e.length]) == string(word) {
			e.count++
			return false
		}
	}
}

// all ranges over the words in the order in which they came.
func (t *tally) all() iter.Seq2[string, uint64] {
	return func(yield func(string, uint64) bool) {
		text := string(t.text)
		for _, e := range t.entries {
			if !yield(text[e.at:e.at+e.length], e.count) {
				return
			}
		}
	}
}

// reset empties the tally.
func (t *tally) reset() {
	clear(t.index)
	t.entries, t.text = t.entries[:0], t.text[:0]
}
