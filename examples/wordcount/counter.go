package main

import (
	"context"
	"errors"
	"io"

	"github.com/onesided/rma/examples/hashtable"
)

const (
	// chunkBytes is the number of bytes of a file that are read at once. tailBytes is that number if only the rest of a
	// word is needed.
	chunkBytes = 256 << 10
	tailBytes  = 4 << 10
	// batchWords is the number of words that are added to the table at once: enough to hide latencies.
	batchWords = 1024
)

// A counter counts the words of pieces of files into the shared table. It belongs to one rank.
type counter struct {
	ctx     context.Context
	table   *hashtable.Table
	batch   *hashtable.Batch
	tally   *tally
	buffer  []byte
	problem func(error)
	found   totals
	// err is the first error of the table. After it no words are counted.
	err error
}

func newCounter(ctx context.Context, table *hashtable.Table, problem func(error)) *counter {
	return &counter{
		ctx: ctx, table: table, batch: table.NewBatch(), tally: newTally(tallyWords),
		buffer: make([]byte, chunkBytes), problem: problem,
	}
}

// count counts a piece. A file that cannot be read is a problem, but not an error.
func (c *counter) count(p piece) error {
	f, err := open(p.path)
	if err == nil {
		err = c.read(f, p)
		f.Close()
	}
	if shorter := (*shorterError)(nil); errors.As(err, &shorter) {
		c.found.Shorter++
		c.problem(err)
	} else if err != nil && c.err == nil && c.ctx.Err() == nil {
		c.found.Unreadable++
		c.problem(err)
	}
	return errors.Join(c.err, c.ctx.Err())
}

// read counts a piece of an open file.
func (c *counter) read(f io.ReaderAt, p piece) error {
	s := &splitter{from: p.from, to: p.to, add: c.add}
	defer func() {
		c.found.Words += s.words
		c.found.Overlong += s.overlong
	}()
	kept := 0
	for offset := max(0, p.from-lookBehind); ; {
		want := int64(tailBytes)
		if offset < p.to {
			want = min(p.to-offset, int64(len(c.buffer)-kept))
		}
		want = min(want, p.size-offset)
		got, err := readAt(f, c.buffer[kept:kept+int(want)], offset)
		if err != nil {
			return err
		}
		if offset == 0 && p.whole() {
			if isBinary(c.buffer[:got]) {
				c.found.Binary++
				return nil
			}
			c.found.Files++
		}
		n := int64(got)
		c.found.Bytes += uint64(max(0, min(offset+n, p.to)-max(offset, p.from)))
		text := c.buffer[:kept+got]
		used := s.feed(text, offset-int64(kept), n < want || offset+n == p.size)
		kept = copy(c.buffer, text[used:])
		offset += n
		switch next := offset - int64(kept); {
		case n < want:
			return &shorterError{p.path, p.size, offset}
		case offset == p.size, c.err != nil, c.ctx.Err() != nil:
			return nil
		case offset >= p.to && (next >= p.to || s.inside):
			// Every word that begins from here on belongs to another piece.
			return nil
		}
	}
}

// add counts a word.
func (c *counter) add(word []byte) {
	if c.tally.add(word) {
		c.flush()
	}
}

// flush adds the tally's counts to the table, and empties the tally.
func (c *counter) flush() {
	for word, n := range c.tally.all() {
		if c.batch.Add(word, n); c.batch.Len() == batchWords {
			c.run()
		}
	}
	c.run()
	c.tally.reset()
}

func (c *counter) run() {
	if c.err == nil {
		c.err = c.batch.Run(c.ctx)
	}
	c.batch.Reset()
}
