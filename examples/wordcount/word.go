package main

import (
	"unicode"
	"unicode/utf8"
)

// longestWord is the greatest length in bytes of a word that is counted. It bounds the memory for a file without
// separators.
const longestWord = 1024

// isWord reports whether r is part of words.
func isWord(r rune) bool {
	return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r)
}

// inWord reports which ASCII bytes are part of words. Other bytes must be decoded first.
var inWord = func() (table [256]bool) {
	for c := range utf8.RuneSelf {
		table[c] = isWord(rune(c))
	}
	return table
}()

// nextWord finds the first word of text that begins at from or later: text[start:end]. If there is none, both are
// len(text).
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

// wordEnd returns the end of a word that continues at from, if it does.
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

// partialRune returns the number of bytes at the end of text that may begin an incomplete character.
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
