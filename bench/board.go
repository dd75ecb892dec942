package main

import (
	"context"
	"errors"

	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// A board is what one rank measures with: the window, its views and the buffers,
// laid out as in peers/mpi_rma.c.
type board struct {
	bytes  *window.Window[byte]
	floats *window.Window[float64]
	ints   *window.Window[int64]
	words  *window.Window[uint64]

	buffer   []byte
	addends  []float64
	operands []int64
	masks    []uint64
	result   int64
	seed     uint64

	other int          // the other of ranks 0 and 1
	pair  window.Group // the other rank as a group
}

// newBoard makes the window, which every rank does together, and buffers for
// accumulates of up to addends elements.
func newBoard(ctx context.Context, w *world.World, addends int, options []window.Option) (*board, error) {
	b := &board{
		buffer:   make([]byte, windowBytes),
		addends:  make([]float64, addends),
		operands: make([]int64, 2),
		masks:    make([]uint64, 1),
		seed:     88172645463325252,
	}
	// Written to, so that no page is met for the first time in a timed loop.
	clear(b.buffer)
	clear(b.addends)
	var err error
	if b.bytes, err = window.Allocate[byte](ctx, w, windowBytes, options...); err != nil {
		return nil, err
	}
	var failures [4]error
	b.floats, failures[0] = window.View[float64](b.bytes)
	b.ints, failures[1] = window.View[int64](b.bytes)
	b.words, failures[2] = window.View[uint64](b.bytes)
	if w.Rank() < 2 {
		b.other = 1 - w.Rank()
		b.pair, failures[3] = b.bytes.Group(b.other)
	}
	return b, errors.Join(failures[:]...)
}

func (b *board) close() error { return b.bytes.Close() }

// spot is a random element of the window, by xorshift.
func (b *board) spot() int {
	s := b.seed
	s ^= s << 13
	s ^= s >> 7
	s ^= s << 17
	b.seed = s
	return int(s % (windowBytes / 8))
}
