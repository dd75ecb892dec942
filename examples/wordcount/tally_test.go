package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/onesided/rma/internal/testsize"
)

func counted(t *testing.T, tally *tally) map[string]uint64 {
	t.Helper()
	counts := make(map[string]uint64)
	for word, n := range tally.all() {
		if _, twice := counts[word]; twice {
			t.Errorf("%q is there twice", word)
		}
		counts[word] = n
	}
	return counts
}

// A tally counts as a map does, before and after it was full.
func TestTally(t *testing.T) {
	random := testsize.Random(t, 8)
	const most = 300
	tally, want := newTally(most), map[string]uint64{}
	for range 20_000 {
		word := strings.Repeat("abc"[random.IntN(3):][:1], 1+random.IntN(40)) + fmt.Sprint(random.IntN(20))
		// The bytes after the word must not count.
		text := []byte(word + strings.Repeat("z", random.IntN(shortWord)))
		want[word]++
		full := tally.add(text[:len(word)])
		if full != (len(want) == most) {
			t.Fatalf("with %d words full is %t, it holds %d", len(want), full, most)
		}
		if full {
			if got := counted(t, tally); !maps.Equal(got, want) {
				t.Fatalf("counts are %v, want %v", got, want)
			}
			tally.reset()
			clear(want)
		}
	}
	if got := counted(t, tally); !maps.Equal(got, want) {
		t.Errorf("counts are %v, want %v", got, want)
	}
}

// Words that differ only after the part that a place stores are different.
func TestTallyLength(t *testing.T) {
	tally, want := newTally(100), map[string]uint64{}
	for length := 1; length <= 3*shortWord; length++ {
		for _, last := range "ab" {
			word := strings.Repeat("a", length-1) + string(last)
			tally.add([]byte(word))
			want[word]++
		}
	}
	if got := counted(t, tally); !maps.Equal(got, want) {
		t.Errorf("counts are %v, want %v", got, want)
	}
}

// Long words fill a tally by their number of bytes.
func TestTallyOfLongWords(t *testing.T) {
	tally := newTally(1 << 20)
	bytes := 0
	for i := 0; ; i++ {
		word := fmt.Sprintf("%d%s", i, strings.Repeat("x", longestWord/2))
		bytes += len(word)
		if full := tally.add([]byte(word)); full != (bytes >= tallyText) {
			t.Fatalf("with %d bytes full is %t, want it from %d on", bytes, full, tallyText)
		} else if full {
			return
		}
	}
}

func TestTallyDoesNotAllocate(t *testing.T) {
	tally := newTally(100)
	text := []byte("some words of a text that goes on behind them")
	if n := testing.AllocsPerRun(100, func() {
		for i := 0; i < len(text); {
			start, end := nextWord(text, i)
			tally.add(text[start:end])
			i = end
		}
		tally.reset()
	}); n != 0 {
		t.Errorf("counting allocates %v times", n)
	}
}

func BenchmarkTally(b *testing.B) {
	random := rand.New(rand.NewPCG(9, 10))
	words := make([][]byte, 1<<16)
	for i := range words {
		// The frequencies are like those of a text: the word of rank n has a frequency of about 1/n.
		words[i] = append(make([]byte, 0, 2*shortWord), fmt.Sprintf("w%x", int(1/(random.Float64()+1e-5)))...)
	}
	tally := newTally(tallyWords)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if tally.add(words[i%len(words)]) {
			tally.reset()
		}
	}
}
