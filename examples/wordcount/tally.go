package main

import (
	"encoding/binary"
	"hash/maphash"
	"iter"
	"math/bits"
	"math/rand/v2"
)

// A tally counts the words of one rank until it is full; then it is emptied as a whole. It is a hash table with
// linear probing that stores short words in its slots. So counting another occurrence of a word costs one cache line.
type tally struct {
	seed0, seed1 uint64
	long         maphash.Seed
	places       []place
	words, most  int
	// text holds the long words, and has space for all words while they are ranged over.
	text []byte
}

// shortWord is the greatest length of a short word, in bytes.
const shortWord = 16

// A place is a slot of the tally: a word and its count. It is empty if length is 0.
type place struct {
	// key is a short word followed by zeros, or a hash and the first bytes of a long word.
	key0, key1 uint64
	count      uint64
	length     uint32
	// at is the offset of a long word in text.
	at uint32
}

const (
	// tallyWords is the number of distinct words of a full tally. It is large enough that frequent words seldom go to
	// the shared table, and small enough that the tally stays in the cache.
	tallyWords = 1 << 17
	// tallyText is about the number of bytes of the long words of a full tally.
	tallyText = 8 << 20
)

// newTally returns a tally for words distinct words.
func newTally(words int) *tally {
	places := 1
	for places < 2*words {
		places *= 2
	}
	return &tally{seed0: rand.Uint64(), seed1: rand.Uint64(), long: maphash.MakeSeed(), places: make([]place, places), most: words}
}

// add counts a word of at least one byte. It reports whether the tally is full and must be emptied before the next
// call. The bytes between the end of the word and its capacity may have any value.
func (t *tally) add(word []byte) (full bool) {
	key0, key1 := beginning(word)
	if len(word) > shortWord {
		key1 = key0
		key0 = maphash.Bytes(t.long, word)
	}
	// Folding the product mixes every bit of both factors into the low bits. With the seeds no file can have words
	// that were chosen to collide.
	high, low := bits.Mul64(key0^t.seed0, key1^t.seed1)
	mask := uint64(len(t.places) - 1)
	for at := (high ^ low) & mask; ; at = (at + 1) & mask {
		p := &t.places[at]
		switch {
		case p.key0 == key0 && p.key1 == key1 && int(p.length) == len(word) && t.same(p, word):
			p.count++
			return false
		case p.length == 0:
			*p = place{key0: key0, key1: key1, count: 1, length: uint32(len(word)), at: uint32(len(t.text))}
			if len(word) > shortWord {
				t.text = append(t.text, word...)
			}
			t.words++
			return t.words >= t.most || len(t.text) >= tallyText
		}
	}
}

// same reports whether a word is that of p, whose keys and length are equal to the word's.
func (t *tally) same(p *place, word []byte) bool {
	return len(word) <= shortWord || string(t.text[p.at:p.at+p.length]) == string(word)
}

// beginning returns the first 16 bytes of a word, filled up with zeros.
func beginning(word []byte) (first, second uint64) {
	n := len(word)
	if cap(word) < shortWord {
		word = append(make([]byte, 0, shortWord), word...)
	}
	word = word[:shortWord]
	first, second = binary.LittleEndian.Uint64(word), binary.LittleEndian.Uint64(word[8:])
	switch {
	case n < 8:
		return first & (1<<(8*n) - 1), 0
	case n < shortWord:
		return first, second & (1<<(8*(n-8)) - 1)
	}
	return first, second
}

// all ranges over the words and their counts, in no order. The tally must not change meanwhile.
func (t *tally) all() iter.Seq2[string, uint64] {
	return func(yield func(string, uint64) bool) {
		// One string holds all words: the long ones, then the short ones in the order of the range.
		text := t.text
		for i := range t.places {
			if p := &t.places[i]; p.length > 0 && p.length <= shortWord {
				var word [shortWord]byte
				binary.LittleEndian.PutUint64(word[:], p.key0)
				binary.LittleEndian.PutUint64(word[8:], p.key1)
				text = append(text, word[:p.length]...)
			}
		}
		words, short := string(text), len(t.text)
		t.text = text[:short]
		for i := range t.places {
			p := &t.places[i]
			if p.length == 0 {
				continue
			}
			at := int(p.at)
			if p.length <= shortWord {
				at = short
				short += int(p.length)
			}
			if !yield(words[at:at+int(p.length)], p.count) {
				return
			}
		}
	}
}

// reset empties the tally.
func (t *tally) reset() {
	clear(t.places)
	t.text, t.words = t.text[:0], 0
}
