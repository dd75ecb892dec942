package main

import (
	"unicode"
	"unicode/utf8"
)

// longestWord is the most bytes that a word may have to be counted. It bounds the
// memory for a file without separators.
const longestWord = 1024

// isWord tells whether r is part of words.
func isWord(r rune) bool {
	return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r)
}

// inWord tells which ASCII bytes are part of words. Of others nothing is known before
// they are decoded.
var inWord = func() (table [256]bool) {
	for c := range utf8.RuneSelf {
		table[c] = isWord(rune(c))
	}
	return table
}()

// nextWord finds the first word of text that begins at from or later:
// text[start:end]. If there is none both are len(text).
func nextWord(text []byte, from int) (start, end int) {
	for i := from; i < len(text); {
		c := text[i]
		if inWord[c] {
			return i, wordEnd(text, i+1)
		}
		if c < utf8.RuneSelf {
			i++
			continue
		}
		r, size := utf8.DecodeRune(text[i:])
		if isWord(r) {
			return i, wordEnd(text, i+size)
		}
		i += size
	}
	return len(text), len(text)
}

// wordEnd is where a word ends that goes on at from, if text goes on with it at all.
func wordEnd(text []byte, from int) int {
	for i := from; i < len(text); {
		c := text[i]
		if inWord[c] {
			i++
			continue
		}
		if c < utf8.RuneSelf {
			return i
		}
		r, size := utf8.DecodeRune(text[i:])
		if !isWord(r) {
			return i
		}
		i += size
	}
	return len(text)
}

// partialRune is how many bytes at the end of text may be the beginning of a character
// that is not complete.
func partialRune(text []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if tail := text[len(text)-n:]; utf8.RuneStart(tail[0]) {
			if utf8.FullRune(tail) {
				return 0
			}
			return n
		}
	}
	return 0
}
