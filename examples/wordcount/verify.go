package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/onesided/rma/examples/hashtable"
	"github.com/onesided/rma/world"
)

// errDifferent reports that the two counts differ.
var errDifferent = errors.New("verification failed")

// showDifferences is the number of different words that are printed.
const showDifferences = 10

// A plain is a count without the library: one goroutine, a map, and a character at a time. It shares the definition
// of a word and the list of files with the job.
type plain struct {
	words map[string]uint64
	found totals
}

// countPlainly counts the files of a listing.
func countPlainly(ctx context.Context, l *listing) (*plain, error) {
	p := &plain{words: make(map[string]uint64), found: totals{Unreadable: l.unreadable}}
	input := bufio.NewReaderSize(nil, chunkBytes)
	for _, f := range l.files {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		p.file(ctx, f, input)
	}
	p.found.Distinct = uint64(len(p.words))
	return p, ctx.Err()
}

func (p *plain) file(ctx context.Context, f file, input *bufio.Reader) {
	opened, err := open(f.path)
	if err != nil {
		p.found.Unreadable++
		return
	}
	defer opened.Close()
	input.Reset(io.LimitReader(&until{ctx, opened}, f.size))
	beginning, err := input.Peek(sniffBytes)
	switch {
	case err != nil && err != io.EOF:
		p.found.Unreadable++
		return
	case bytes.Contains(beginning, []byte{0}):
		p.found.Binary++
		return
	}
	p.found.Files++
	read, err := p.text(input)
	p.found.Bytes += uint64(read)
	if err != nil {
		p.found.Unreadable++
	} else if read < f.size {
		p.found.Shorter++
	}
}

// until is a reader that ends with its context.
type until struct {
	ctx   context.Context
	input io.Reader
}

func (u *until) Read(buffer []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.input.Read(buffer)
}

// text counts the words of input and returns its length in bytes.
func (p *plain) text(input io.RuneReader) (read int64, err error) {
	var word []byte
	for {
		r, size, err := input.ReadRune()
		read += int64(size)
		if err == nil && isWord(r) {
			if len(word) <= longestWord {
				word = append(word, string(r)...)
			}
			continue
		}
		switch {
		case len(word) > longestWord:
			p.found.Overlong++
		case len(word) > 0:
			p.found.Words++
			p.words[string(word)]++
		}
		word = word[:0]
		switch {
		case errors.Is(err, io.EOF):
			return read, nil
		case err != nil:
			return read, err
		}
	}
}

// compare compares the table with the plain count of rank 0. It is collective. job holds the totals of the job; p is
// nil on other ranks. The words of the plain count are deleted from the table.
func compare(ctx context.Context, w *world.World, table *hashtable.Table, job totals, p *plain) error {
	var differences []string
	var err error
	if w.Rank() == 0 {
		differences, err = p.compareWords(ctx, table)
	}
	if err := agree(ctx, w, err); err != nil {
		return err
	}
	// The words that are left are missing in the plain count.
	left, _, _ := owned(table, showDifferences)
	extra, err := gatherWords(ctx, w, left)
	if err != nil || w.Rank() != 0 {
		return err
	}
	for _, x := range extra {
		differences = append(differences, fmt.Sprintf("%s: %d in the table, 0 by the plain count", x.word, x.count))
	}
	if job != p.found {
		differences = append([]string{fmt.Sprintf("totals: %+v in the job, %+v by the plain count", job, p.found)}, differences...)
	}
	if len(differences) == 0 {
		return nil
	}
	text := ""
	for _, d := range differences[:min(len(differences), showDifferences)] {
		text += "\n  " + d
	}
	return fmt.Errorf("%w; files that changed meanwhile can be a reason:%s", errDifferent, text)
}

// compareWords looks up every word in the table, on all ranks, and deletes it there. It returns the first differences
// in the order of words.
func (p *plain) compareWords(ctx context.Context, table *hashtable.Table) (differences []string, err error) {
	words := slices.Sorted(maps.Keys(p.words))
	counts, deletions := table.NewBatch(), table.NewBatch()
	for chunk := range slices.Chunk(words, batchWords) {
		for _, word := range chunk {
			counts.Count(word)
			deletions.Delete(word)
		}
		if err := counts.Run(ctx); err != nil {
			return nil, err
		}
		if err := deletions.Run(ctx); err != nil {
			return nil, err
		}
		for i, word := range chunk {
			if got := counts.Result(i).Count; got != p.words[word] && len(differences) < showDifferences {
				differences = append(differences, fmt.Sprintf("%s: %d in the table, %d by the plain count", word, got, p.words[word]))
			}
		}
		counts.Reset()
		deletions.Reset()
	}
	return differences, nil
}
