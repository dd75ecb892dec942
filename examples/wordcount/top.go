package main

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/onesided/rma/examples/hashtable"
	"github.com/onesided/rma/world"
)

// A wordCount is a word and its count.
type wordCount struct {
	word  string
	count uint64
}

// before is the order in which words are printed.
func before(a, b wordCount) int {
	return cmp.Or(cmp.Compare(b.count, a.count), strings.Compare(a.word, b.word))
}

// first keeps the first n of the words that it is given, and at most n others.
type first struct {
	n     int
	words []wordCount
}

func (f *first) offer(w wordCount) {
	if f.n == 0 {
		return
	}
	f.words = append(f.words, w)
	if len(f.words)/2 >= f.n {
		f.trim()
	}
}

// trim sorts the words and drops those after the first n.
func (f *first) trim() []wordCount {
	slices.SortFunc(f.words, before)
	f.words = f.words[:min(f.n, len(f.words))]
	return f.words
}

// owned examines this rank's part of the table. It returns its n most frequent words, the number of different words,
// and the sum of their counts.
func owned(table *hashtable.Table, n int) (top []wordCount, distinct, sum uint64) {
	f := &first{n: n}
	for word, value := range table.Local() {
		distinct++
		sum += value.Count
		f.offer(wordCount{word, value.Count})
	}
	return f.trim(), distinct, sum
}

// gatherWords collects all ranks' words on rank 0, in the order in which they are printed.
func gatherWords(ctx context.Context, w *world.World, mine []wordCount) ([]wordCount, error) {
	var text []byte
	for _, word := range mine {
		text = binary.AppendUvarint(text, word.count)
		text = binary.AppendUvarint(text, uint64(len(word.word)))
		text = append(text, word.word...)
	}
	parts, err := gather(ctx, w, text)
	if err != nil {
		return nil, err
	}
	var all []wordCount
	for rank, part := range parts {
		for len(part) > 0 {
			count, n := binary.Uvarint(part)
			length, m := binary.Uvarint(part[max(n, 0):])
			if n <= 0 || m <= 0 || length > uint64(len(part)-n-m) {
				return nil, fmt.Errorf("the words of rank %d are damaged", rank)
			}
			part = part[n+m:]
			all = append(all, wordCount{string(part[:length]), count})
			part = part[length:]
		}
	}
	slices.SortFunc(all, before)
	return all, nil
}
