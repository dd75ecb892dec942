// Command transpose repeatedly adds the transpose of a matrix that is distributed over the ranks to another matrix:
// Transpose of the Parallel Research Kernels.
//
//	go run ./cmd/rmarun -n 4 ./examples/transpose
//	go run ./cmd/rmarun -n 2 ./examples/transpose -order 2000 -by get -sync flush
//
// Each rank has the same number of columns of both matrices, A and B. B is initially zero, and element i, j of A is i
// + order*j. In an iteration the transpose of A is added to B, and each element of A grows by 1. At the end all of B
// is known.
package main

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/onesided/rma/examples/internal/kernel"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

func main() { kernel.Main(newKernel()) }

// job holds the flags.
type job struct {
	order, iterations, tile int
	// by selects how blocks move, sync how ranks synchronize.
	by, sync int
	// simd enables arithmetic on several elements at a time.
	simd bool
}

// A rank puts blocks to the ranks that need them, or these get them.
const (
	byPut = iota
	byGet
)

// Ranks synchronize by fences, or by flushes and barriers.
const (
	syncFence = iota
	syncFlush
)

func newKernel() *kernel.Kernel {
	j := &job{order: 1000, iterations: 10, tile: 32, simd: true}
	return &kernel.Kernel{
		Name: "transpose", About: "Adds the transpose of a distributed matrix to another (Transpose of the Parallel Research Kernels)",
		More: `The results are the rate at which both matrices pass, in 10^6 bytes a second, the mean time of an iteration, and
that of it in which blocks were exchanged, of rank 0.`,
		Flags: func(f *kernel.Flags) {
			f.Number(&j.order, "order", 1, 1<<17, "the matrices have `n` lines and columns, which the ranks divide")
			f.Number(&j.iterations, "iterations", 1, 1<<30, "time `n` iterations, behind one that is not")
			f.Number(&j.tile, "tile", 1, 1<<17, "transpose squares of `n` by n elements at a time")
			f.Choice("by", "the `operation` that moves blocks", []string{"put", "get"}, &j.by)
			f.Choice("sync", "the `call` that synchronizes", []string{"fence", "flush"}, &j.sync)
			f.BoolVar(&j.simd, "simd", true, "calculate several elements at a time where the processor can; -simd=false is one at a time")
		},
		Check: j.check,
		Run:   j.run,
	}
}

// arithmetic returns the fastest arithmetic that is enabled and that this processor has.
func (j *job) arithmetic() arithmetic {
	if j.simd {
		if v := vectors(); v != nil {
			return *v
		}
	}
	return loops
}

func (j *job) check(ranks int) error {
	if j.order%ranks != 0 {
		return fmt.Errorf("-order %d on %d ranks: they must divide it", j.order, ranks)
	}
	return nil
}

// A matrix is a rank's part of the work: a and b are its columns, one after the other.
type matrix struct {
	*job
	arithmetic
	rank, ranks int
	// block is the number of columns of a rank. The part of these columns in the lines of one rank is a square block
	// of that size.
	block int
	a, b  []float64
	// win has room for two blocks from each other rank, or for it. Two are needed because a rank that is ahead may put
	// the next block while this rank reads the last one. packed is for a block that is sent or received.
	win    *window.Window[float64]
	packed []float64
}

func (j *job) run(ctx context.Context, r *kernel.Rank) error {
	m := &matrix{job: j, arithmetic: j.arithmetic(), rank: r.Rank(), ranks: r.Size(), block: j.order / r.Size()}
	m.a, m.b = make([]float64, m.block*j.order), make([]float64, m.block*j.order)
	m.packed = make([]float64, m.block*m.block*(m.ranks-1))
	for i := range m.a {
		m.a[i] = float64(m.rank*m.block*j.order + i)
	}
	var err error
	if m.win, err = window.Allocate[float64](ctx, r.World, 2*len(m.packed)); err != nil {
		return err
	}
	if j.sync == syncFlush {
		err = m.win.LockAll(ctx, window.NoCheck)
	} else {
		err = m.win.Fence(ctx)
	}
	if err != nil {
		return err
	}
	var begun, exchanging float64
	for iteration := range j.iterations + 1 {
		if iteration == 1 {
			if err := r.Barrier(ctx); err != nil {
				return err
			}
			begun, exchanging = r.Now().Seconds(), 0
		}
		r.Progress(iteration, j.iterations+1)
		took, err := m.step(ctx, r, iteration%2)
		if err != nil {
			return err
		}
		exchanging += took
	}
	took := []float64{r.Now().Seconds() - begun}
	if err := world.AllReduceOp(ctx, r.World, took, took, world.Max); err != nil {
		return err
	}
	wrong := []float64{m.wrong()}
	if err := world.AllReduceOp(ctx, r.World, wrong, wrong, world.Sum); err != nil {
		return err
	}
	each := took[0] / float64(j.iterations)
	r.Result("rate", 1e-6*2*8*float64(j.order)*float64(j.order)/each, "MB/s")
	r.Result("iteration", 1e6*each, "us")
	r.Result("exchange", 1e6*exchanging/float64(j.iterations), "us")
	if j.sync == syncFlush {
		err = m.win.UnlockAll(context.WithoutCancel(ctx))
	} else {
		err = m.win.Fence(ctx, window.NoSucceed)
	}
	if err := errors.Join(err, m.win.Close()); err != nil {
		return err
	}
	if wrong[0] > 1e-8 {
		return fmt.Errorf("%w: B is off by %v in all", kernel.ErrVerification, wrong[0])
	}
	return nil
}

// step adds the transpose of A to B, and 1 to A. It returns the time for which blocks were exchanged.
func (m *matrix) step(ctx context.Context, r *kernel.Rank, turn int) (exchanging float64, err error) {
	size := m.block * m.block
	area := turn * len(m.packed)
	if err := m.transpose(m.lines(m.b, m.rank), m.order, m.lines(m.a, m.rank), m.addTile, nil); err != nil {
		return 0, err
	}
	// In each phase blocks go one rank further, so that not all ranks send to the same one.
	for phase := 1; phase < m.ranks; phase++ {
		to, at := (m.rank-phase+m.ranks)%m.ranks, size*(phase-1)
		packed := m.packed[at:][:size]
		// Columns are put as soon as they are complete, while they are cached.
		put := func(first, last int) error {
			begun := r.Now()
			err := m.win.Put(packed[first*m.block:last*m.block], to, area+at+first*m.block)
			exchanging += (r.Now() - begun).Seconds()
			return err
		}
		if m.by == byGet {
			packed, put = m.win.Local()[area+at:][:size], nil
		}
		if err := m.transpose(packed, m.block, m.lines(m.a, to), m.storeTile, put); err != nil {
			return 0, err
		}
	}
	begun := r.Now()
	if err := m.synchronize(ctx, r); err != nil {
		return 0, err
	}
	arrived := m.win.Local()[area:]
	if m.by == byGet {
		arrived = m.packed
		for phase := 1; phase < m.ranks; phase++ {
			at := size * (phase - 1)
			if err := m.win.Get(m.packed[at:][:size], (m.rank+phase)%m.ranks, area+at); err != nil {
				return 0, err
			}
		}
		if err := m.complete(ctx); err != nil {
			return 0, err
		}
	}
	exchanging += (r.Now() - begun).Seconds()
	for phase := 1; phase < m.ranks; phase++ {
		m.scatter((m.rank+phase)%m.ranks, arrived[size*(phase-1):][:size])
	}
	return exchanging, nil
}

// synchronize returns when the blocks that all ranks have put, or packed, have arrived.
func (m *matrix) synchronize(ctx context.Context, r *kernel.Rank) error {
	if m.sync == syncFence {
		return m.win.Fence(ctx)
	}
	if err := m.win.FlushAll(ctx); err != nil {
		return err
	}
	return r.Barrier(ctx)
}

// complete returns when the blocks that this rank gets have arrived.
func (m *matrix) complete(ctx context.Context) error {
	if m.sync == syncFence {
		return m.win.Fence(ctx)
	}
	return m.win.FlushAll(ctx)
}

// lines returns the columns from the first line of a rank's block on.
func (m *matrix) lines(columns []float64, rank int) []float64 { return columns[rank*m.block:] }

// transpose stores the transpose of a block of A in to, or adds it there, and adds 1 to the block. The columns of the
// block are order apart, those of to stride. It goes tile by tile. It calls complete when columns of to are complete.
func (m *matrix) transpose(to []float64, stride int, from []float64, tile tile, complete func(first, last int) error) error {
	for i := 0; i < m.block; i += m.tile {
		rows := min(m.tile, m.block-i)
		for j := 0; j < m.block; j += m.tile {
			tile(to[i*stride+j:], stride, from[j*m.order+i:], m.order, rows, min(m.tile, m.block-j))
		}
		if complete != nil {
			if err := complete(i, i+rows); err != nil {
				return err
			}
		}
	}
	return nil
}

// scatter adds a transposed block to the lines of B of the rank from which it comes.
func (m *matrix) scatter(rank int, block []float64) {
	lines := m.lines(m.b, rank)
	for c := range m.block {
		m.add(lines[c*m.order:][:m.block], block[c*m.block:][:m.block])
	}
}

// wrong returns the total error of B.
func (m *matrix) wrong() (wrong float64) {
	times := float64(m.iterations + 1)
	added := times * float64(m.iterations) / 2
	for c := range m.block {
		j := m.rank*m.block + c
		for i, value := range m.b[c*m.order:][:m.order] {
			wrong += math.Abs(value - (float64(m.order*i+j)*times + added))
		}
	}
	return wrong
}
