// Command p2p passes values along a pipeline of ranks, one at a time: Synch_p2p of the Parallel Research Kernels.
//
//	go run ./cmd/rmarun -n 4 ./examples/p2p
//	go run ./cmd/rmarun -n 2 ./examples/p2p -m 10000 -n 100 -group 4
//
// Each rank has some columns of a grid of m columns and n lines. The first line and the first column are given:
// element i, j there is i + j. Every other element is the sum of the previous elements in its line and in its column,
// less the element before both. So a rank must wait, in each line, for the last element of the previous rank, which
// puts it and notifies.
//
// At the end of an iteration the last element, negated, becomes the first one, so that values grow by a known amount
// in the next. The last element is finally (iterations+1) * (m+n-2).
package main

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/onesided/rma/examples/grid"
	"github.com/onesided/rma/examples/internal/kernel"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

func main() { kernel.Main(newKernel()) }

// job holds the flags: columns, lines, iterations, and the number of lines that go together.
type job struct{ columns, lines, iterations, group int }

func newKernel() *kernel.Kernel {
	j := &job{columns: 1000, lines: 1000, iterations: 10, group: 1}
	return &kernel.Kernel{
		Name: "p2p", About: "Passes values along a pipeline of ranks (Synch_p2p of the Parallel Research Kernels)",
		More: `The results are the rate in 10^6 floating point operations a second, and the mean time of an iteration.`,
		Flags: func(f *kernel.Flags) {
			f.Number(&j.columns, "m", 2, 1<<30, "the grid has `n` columns")
			f.Number(&j.lines, "n", 2, 1<<30, "the grid has `n` lines")
			f.Number(&j.iterations, "iterations", 1, 1<<30, "time `n` iterations, behind one that is not")
			f.Number(&j.group, "group", 1, 1<<20, "pass `n` lines on together")
		},
		Check: j.check,
		Run:   j.run,
	}
}

func (j *job) check(ranks int) error {
	if j.columns < 2*ranks {
		return fmt.Errorf("-m %d on %d ranks: each needs at least 2 columns", j.columns, ranks)
	}
	return nil
}

// The notification slots of the window.
const (
	// slotOfLines counts lines that the previous rank has passed on. slotOfCorner counts corners from the last rank.
	slotOfLines = iota
	slotOfCorner
)

// A pipeline is a rank's part of the work. Its memory is the window. Each line has the last element of the previous
// rank, and then its own columns. The first rank has no previous one.
type pipeline struct {
	*job
	rank, ranks int
	win         *window.Window[float64]
	grid        []float64
	// stride is the length of a line on this rank, next that on the next rank.
	stride, next int
	edge         []float64
}

func (j *job) run(ctx context.Context, r *kernel.Rank) error {
	p := &pipeline{job: j, rank: r.Rank(), ranks: r.Size()}
	first, last := grid.Block(j.columns, p.rank, p.ranks)
	if p.rank > 0 {
		first--
	}
	p.stride = last - first
	if p.rank < p.ranks-1 {
		_, end := grid.Block(j.columns, p.rank+1, p.ranks)
		p.next = end - last + 1
	}
	var err error
	if p.win, err = window.Allocate[float64](ctx, r.World, p.stride*j.lines); err != nil {
		return err
	}
	p.grid, p.edge = p.win.Local(), make([]float64, min(j.group, j.lines))
	for c := range p.stride {
		p.grid[c] = float64(first + c)
	}
	if p.rank == 0 {
		for i := range j.lines {
			p.grid[i*p.stride] = float64(i)
		}
	}
	if err := p.win.LockAll(ctx, window.NoCheck); err != nil {
		return err
	}
	var begun float64
	for iteration := range j.iterations + 1 {
		if iteration == 1 {
			if err := r.Barrier(ctx); err != nil {
				return err
			}
			begun = r.Now().Seconds()
		}
		r.Progress(iteration, j.iterations+1)
		if err := p.iterate(ctx); err != nil {
			return err
		}
	}
	took := []float64{r.Now().Seconds() - begun}
	if err := world.AllReduceOp(ctx, r.World, took, took, world.Max); err != nil {
		return err
	}
	corner := []float64{p.grid[len(p.grid)-1]}
	if err := world.Broadcast(ctx, r.World, p.ranks-1, corner); err != nil {
		return err
	}
	each := took[0] / float64(j.iterations)
	r.Result("rate", 1e-6*2*float64(j.columns-1)*float64(j.lines-1)/each, "MFlop/s")
	r.Result("iteration", 1e6*each, "us")
	if err := errors.Join(p.win.UnlockAll(context.WithoutCancel(ctx)), p.win.Close()); err != nil {
		return err
	}
	if want := float64(j.iterations+1) * float64(j.columns+j.lines-2); math.Abs(corner[0]-want) > 1e-8 {
		return fmt.Errorf("%w: the last element is %v, must be %v", kernel.ErrVerification, corner[0], want)
	}
	return nil
}

// iterate computes the grid once. A rank may begin the next iteration while later ranks are in this one. They have
// read what it overwrites there: the first rank begins an iteration only when the last has finished, and all wait for
// the first.
func (p *pipeline) iterate(ctx context.Context) error {
	for top := 1; top < p.lines; top += p.group {
		bottom := min(top+p.group, p.lines)
		if p.rank > 0 {
			if err := p.win.WaitNotify(ctx, slotOfLines, 1); err != nil {
				return err
			}
		}
		for i := top; i < bottom; i++ {
			sum(p.grid[i*p.stride:][:p.stride], p.grid[(i-1)*p.stride:][:p.stride])
		}
		if p.rank == p.ranks-1 {
			continue
		}
		for i := top; i < bottom; i++ {
			p.edge[i-top] = p.grid[i*p.stride+p.stride-1]
		}
		if err := p.pass(ctx, top, bottom); err != nil {
			return err
		}
	}
	return p.close(ctx)
}

// pass puts the last elements of lines to the next rank.
func (p *pipeline) pass(ctx context.Context, top, bottom int) error {
	for i := top; i < bottom-1; i++ {
		if err := p.win.Put(p.edge[i-top:][:1], p.rank+1, i*p.next); err != nil {
			return err
		}
	}
	if bottom-top > 1 {
		// The notification covers the last put only.
		if err := p.win.Flush(ctx, p.rank+1); err != nil {
			return err
		}
	}
	if err := p.win.PutNotify(p.edge[bottom-1-top:][:1], p.rank+1, (bottom-1)*p.next, slotOfLines); err != nil {
		return err
	}
	return p.win.FlushLocal(ctx, p.rank+1)
}

// close puts the last element, negated, to the beginning of the first rank's grid.
func (p *pipeline) close(ctx context.Context) error {
	if p.ranks == 1 {
		p.grid[0] = -p.grid[len(p.grid)-1]
		return nil
	}
	if p.rank == p.ranks-1 {
		p.edge[0] = -p.grid[len(p.grid)-1]
		if err := p.win.PutNotify(p.edge[:1], 0, 0, slotOfCorner); err != nil {
			return err
		}
		return p.win.FlushLocal(ctx, 0)
	}
	if p.rank == 0 {
		return p.win.WaitNotify(ctx, slotOfCorner, 1)
	}
	return nil
}

// sum computes a line whose first element is known, from the line above.
func sum(line, above []float64) {
	above = above[:len(line)]
	last := line[0]
	for c := 1; c < len(line); c++ {
		last += above[c] - above[c-1]
		line[c] = last
	}
}
