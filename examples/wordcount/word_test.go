package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/onesided/rma/internal/testsize"
)

// wordsOf returns the words that nextWord finds.
func wordsOf(text []byte) []string {
	words := []string{}
	for i := 0; ; {
		start, end := nextWord(text, i)
		if start == len(text) {
			return words
		}
		words = append(words, string(text[start:end]))
		i = end
	}
}

// plainWords is the definition of a word. Bytes that are not UTF-8 are decoded as the replacement character, which is
// no letter.
func plainWords(text []byte) []string {
	return strings.FieldsFunc(string(text), func(r rune) bool { return !isWord(r) })
}

func TestWords(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"empty", "", nil},
		{"no word", " \t\n.,;-\u00a0\u2014\ufffd", nil},
		{"one", "word", []string{"word"}},
		{"between separators", "  a, b.c ", []string{"a", "b", "c"}},
		{"digits and underscores", "x_1 _ 0x7f", []string{"x_1", "_", "0x7f"}},
		{"case", "Go go", []string{"Go", "go"}},
		{"apostrophe and hyphen separate", "don't re-do", []string{"don", "t", "re", "do"}},
		{"letters of other scripts", "Straße σοφία 数え 語", []string{"Straße", "σοφία", "数え", "語"}},
		{"digits of other scripts", "٣٤ x٣", []string{"٣٤", "x٣"}},
		{"numbers that are not decimal digits", "x²y ½ Ⅷ", []string{"x", "y"}},
		{"combining marks separate", "e\u0301a", []string{"e", "a"}},
		{"bytes that are not UTF-8 separate", "a\xffb\xc3", []string{"a", "b"}},
		{"overlong encoding", "a\xc1\xa1b", []string{"a", "b"}},
		{"surrogate", "a\xed\xa0\x80b", []string{"a", "b"}},
		{"NUL separates", "a\x00b", []string{"a", "b"}},
		{"four bytes", "𝒳𝒴 😀", []string{"𝒳𝒴"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := wordsOf([]byte(c.text)); !slices.Equal(got, c.want) {
				t.Errorf("words of %q are %q, want %q", c.text, got, c.want)
			}
		})
	}
}

func FuzzWords(f *testing.F) {
	for _, text := range []string{"a b", "Straße\xff数", "\xe6\x95", strings.Repeat("x", longestWord+1) + " y", "a\xf0\x9d\x92"} {
		f.Add([]byte(text), uint64(1))
	}
	f.Fuzz(func(t *testing.T, text []byte, seed uint64) {
		want := plainWords(text)
		if got := wordsOf(text); !slices.Equal(got, want) {
			t.Fatalf("words of %q are %q, want %q", text, got, want)
		}
		random := rand.New(rand.NewPCG(seed, 0))
		checkPieces(t, text, cuts(random, len(text), random.IntN(4)), random)
	})
}

// cuts returns n random offsets in a text, and its two ends, in order.
func cuts(random *rand.Rand, length, n int) []int {
	at := []int{0, length}
	for range n {
		at = append(at, random.IntN(length+1))
	}
	slices.Sort(at)
	return at
}

// checkPieces cuts a text into pieces, reads each in random chunks, and compares the words with plainWords.
func checkPieces(t *testing.T, text []byte, at []int, random *rand.Rand) {
	t.Helper()
	var got []string
	var words, overlong uint64
	for i := range len(at) - 1 {
		s := &splitter{from: int64(at[i]), to: int64(at[i+1]), add: func(word []byte) { got = append(got, string(word)) }}
		feedAll(s, text, max(0, at[i]-lookBehind), random)
		words += s.words
		overlong += s.overlong
	}
	all := plainWords(text)
	want := slices.DeleteFunc(slices.Clone(all), func(word string) bool { return len(word) > longestWord })
	if !slices.Equal(got, want) {
		t.Fatalf("words of %q cut at %v are %q, want %q", text, at, got, want)
	}
	if words != uint64(len(want)) || overlong != uint64(len(all)-len(want)) {
		t.Fatalf("%d words and %d too long ones, want %d and %d", words, overlong, len(want), len(all)-len(want))
	}
}

// feedAll feeds a splitter with text from offset to the end.
func feedAll(s *splitter, text []byte, offset int, random *rand.Rand) {
	for end := offset; ; {
		end = min(end+1+random.IntN(8), len(text))
		last := end == len(text)
		offset += s.feed(text[offset:end:end], int64(offset), last)
		if last {
			return
		}
	}
}

// Characters of one to four bytes, and truncated ones, are cut at every byte.
func TestPiecesAtEveryPlace(t *testing.T) {
	random := testsize.Random(t, 2)
	for _, text := range []string{
		"one two", "é ß数𝒳 😀x", "a\xc3 b\xe6\x95 c\xf0\x9d\x92 d", "\x80\x80\x80\x80a\x80b", "数数数数", "𝒳𝒴𝒳", "_",
	} {
		for at := range len(text) + 1 {
			checkPieces(t, []byte(text), []int{0, at, len(text)}, random)
			for next := at; next <= len(text); next++ {
				checkPieces(t, []byte(text), []int{0, at, next, len(text)}, random)
			}
		}
	}
}

// A word of at most longestWord bytes is counted, whatever the chunks and pieces.
func TestLongWords(t *testing.T) {
	random := testsize.Random(t, 4)
	for _, length := range []int{longestWord - 1, longestWord, longestWord + 1, 3 * longestWord} {
		for _, letter := range []string{"x", "é", "数"} {
			word := strings.Repeat(letter, length/len(letter)) + strings.Repeat("x", length%len(letter))
			text := []byte("before " + word + " after " + word)
			t.Run(fmt.Sprintf("%d bytes of %s", length, letter), func(t *testing.T) {
				for range 5 {
					checkPieces(t, text, cuts(random, len(text), 3), random)
				}
			})
		}
	}
}

func TestRandomText(t *testing.T) {
	random := testsize.Random(t, 6)
	parts := []string{"a", "b", "_", "7", " ", "\n", "é", "数", "𝒳", "😀", "\x80", "\xe6", "\xf0\x9d", "\x00"}
	for range testsize.N(300) {
		var text []byte
		for range random.IntN(200) {
			text = append(text, parts[random.IntN(len(parts))]...)
		}
		if got, want := wordsOf(text), plainWords(text); !slices.Equal(got, want) {
			t.Fatalf("words of %q are %q, want %q", text, got, want)
		}
		checkPieces(t, text, cuts(random, len(text), 3), random)
	}
}

func TestPartialRune(t *testing.T) {
	for _, r := range "aé数𝒳" {
		whole := []byte("x" + string(r))
		for n := range utf8.RuneLen(r) {
			text := whole[:1+n]
			if got := partialRune(text); got != n {
				t.Errorf("%q ends with %d bytes of a character, want %d", text, got, n)
			}
		}
		if got := partialRune(whole); got != 0 {
			t.Errorf("%q ends with %d bytes of a character, want none", whole, got)
		}
	}
}

func BenchmarkWords(b *testing.B) {
	for _, c := range []struct{ name, text string }{
		{"ASCII", "for _, word := range words { count[word]++ }\n"},
		{"Greek", "ἓν οἶδα ὅτι οὐδὲν οἶδα "},
	} {
		text := bytes.Repeat([]byte(c.text), 4096)
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				for i := 0; i < len(text); {
					_, i = nextWord(text, i)
				}
			}
		})
	}
}
