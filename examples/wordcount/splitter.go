package main

import "unicode/utf8"

// lookBehind is the number of bytes before its start from which a piece is read. A character that ends at the start,
// or extends beyond it, begins at that distance or less. So does every sequence of bytes that is decoded in the same
// way from wherever decoding begins.
const lookBehind = utf8.UTFMax

// A splitter finds the words of one piece of a file, which it receives in chunks.
type splitter struct {
	// Words that begin at file offsets from ≤ offset < to belong to the piece.
	from, to int64
	// inside is set if the bytes so far end within a word that is too long to be kept.
	inside bool

	add func(word []byte)
	// words counts the calls of add, overlong the words that are too long for it.
	words, overlong uint64
}

// feed processes the text at a file offset and returns the number of bytes that it is done with. The next feed begins
// there, with at least one more byte. The rest is at most longestWord bytes and a part of a character. If last is set
// there is no rest.
func (s *splitter) feed(text []byte, offset int64, last bool) int {
	if !last {
		text = text[:len(text)-partialRune(text)]
	}
	i := 0
	if s.inside {
		if i = wordEnd(text, 0); i == len(text) {
			return i
		}
		s.inside = false
	}
	for {
		start, end := nextWord(text, i)
		switch at := offset + int64(start); {
		case start == len(text):
			return start
		case end == len(text) && !last && end-start <= longestWord:
			return start
		case at < s.from || at >= s.to:
		case end-start > longestWord:
			s.overlong++
		default:
			s.words++
			s.add(text[start:end])
		}
		i = end
		if end == len(text) {
			s.inside = !last
			return end
		}
	}
}
