package main

import "unicode/utf8"

// lookBehind is how far before its start a piece is read. A character that ends at the
// start, or goes on behind it, begins there or later, and so does every stretch of bytes
// that are decoded in the same way from wherever one begins.
const lookBehind = utf8.UTFMax

// A splitter finds the words of one piece of a file, which it is fed chunk by chunk.
type splitter struct {
	// Words that begin at file offsets from ≤ offset < to are the piece's.
	from, to int64
	// inside: the bytes fed so far end within a word that is too long to be kept.
	inside bool

	add func(word []byte)
	// words counts the calls of add, overlong the words that are too long for it.
	words, overlong uint64
}

// feed takes the text at a file offset and returns how much of it has been dealt with.
// The next feed begins there, with at least one more byte; what is left is
// at most longestWord bytes and a part of a character. If last, all has been dealt with.
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
