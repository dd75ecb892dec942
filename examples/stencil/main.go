// Command stencil repeatedly applies a star to a grid that is distributed over the ranks: Stencil of the Parallel
// Research Kernels.
//
//	go run ./cmd/rmarun -n 4 ./examples/stencil
//	go run ./cmd/rmarun -n 2 ./examples/stencil -n 2000 -radius 4 -sync notify
//
// Element i, j of the n x n grid is initially i + j. An iteration adds to the result of each element the weighted sum of
// the elements in its row and its column within the radius. Elements closer to a side than the radius have no result.
// Then all elements of the grid grow by 1. Between iterations the ranks exchange edges with their neighbors. The sums
// are slopes, so the results are known: each grows by 2 in an iteration.
package main

import (
	"context"
	"fmt"
	"math"

	"github.com/onesided/rma/examples/grid"
	"github.com/onesided/rma/examples/internal/kernel"
	"github.com/onesided/rma/world"
)

func main() { kernel.Main(newKernel()) }

// job holds the flags.
type job struct {
	order, iterations, radius int
	by                        grid.Sync
	// simd enables arithmetic on several elements at a time.
	simd bool
}

func newKernel() *kernel.Kernel {
	j := &job{order: 1000, iterations: 10, radius: 2, by: grid.PSCW, simd: true}
	return &kernel.Kernel{
		Name: "stencil", About: "Applies a star to a grid that is distributed over the ranks (Stencil of the Parallel Research Kernels)",
		More: `The results are the rate in 10^6 floating point operations a second, the mean time of an iteration, and that
of it in which edges were exchanged, of rank 0.`,
		Flags: func(f *kernel.Flags) {
			f.Number(&j.order, "n", 1, 1<<20, "the grid has `n` lines and columns")
			f.Number(&j.iterations, "iterations", 1, 1<<30, "time `n` iterations, behind one that is not")
			f.Number(&j.radius, "radius", 1, 64, "the star reaches `n` elements far")
			grid.Flag(f.FlagSet, &j.by)
			f.BoolVar(&j.simd, "simd", true, "calculate several elements at a time where the processor can; -simd=false is one at a time")
		},
		Check: j.check,
		Run:   j.run,
	}
}

func (j *job) check(ranks int) error {
	if j.order <= 2*j.radius {
		return fmt.Errorf("-n %d with -radius %d: no star fits, -n must be more than %d", j.order, j.radius, 2*j.radius)
	}
	return grid.Check(ranks, j.order, j.order, j.radius)
}

// A sweep is a rank's part of the work.
type sweep struct {
	arithmetic
	field *grid.Field
	// out is the sum of the stars of each element of the block, by lines.
	out [][]float64
	// The lines and columns of the block that have stars: from first to before last.
	firstRow, lastRow, firstColumn, lastColumn int
	weights                                    []float64
}

func (j *job) run(ctx context.Context, r *kernel.Rank) error {
	field, err := grid.New(ctx, r.World, j.order, j.order, j.radius, j.by)
	if err != nil {
		return err
	}
	s := newSweep(field, j.order, j.radius, j.arithmetic())
	var begun, exchanging float64
	for iteration := range j.iterations + 1 {
		if iteration == 1 {
			if err := r.Barrier(ctx); err != nil {
				return err
			}
			begun, exchanging = r.Now().Seconds(), 0
		}
		r.Progress(iteration, j.iterations+1)
		before := r.Now()
		if err := field.Exchange(ctx); err != nil {
			return err
		}
		exchanging += (r.Now() - before).Seconds()
		s.apply()
		s.advance()
	}
	took := []float64{r.Now().Seconds() - begun}
	if err := world.AllReduceOp(ctx, r.World, took, took, world.Max); err != nil {
		return err
	}
	norm := []float64{s.norm()}
	if err := world.AllReduceOp(ctx, r.World, norm, norm, world.Sum); err != nil {
		return err
	}
	active := float64(j.order-2*j.radius) * float64(j.order-2*j.radius)
	each := took[0] / float64(j.iterations)
	r.Result("rate", 1e-6*active*float64(2*(4*j.radius+1)+1)/each, "MFlop/s")
	r.Result("iteration", 1e6*each, "us")
	r.Result("exchange", 1e6*exchanging/float64(j.iterations), "us")
	if err := field.Close(); err != nil {
		return err
	}
	if want := 2 * float64(j.iterations+1); math.Abs(norm[0]/active-want) > 1e-8 {
		return fmt.Errorf("%w: the norm is %v, must be %v", kernel.ErrVerification, norm[0]/active, want)
	}
	return nil
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

func newSweep(field *grid.Field, order, radius int, by arithmetic) *sweep {
	s := &sweep{
		arithmetic: by, field: field, out: make([][]float64, field.Rows), weights: make([]float64, radius),
		firstRow: max(radius-field.Top, 0), lastRow: min(order-radius-field.Top, field.Rows),
		firstColumn: max(radius-field.Left, 0), lastColumn: min(order-radius-field.Left, field.Columns),
	}
	for k := 1; k <= radius; k++ {
		s.weights[k-1] = 1 / float64(2*k*radius)
	}
	for i := range s.out {
		s.out[i] = make([]float64, field.Columns)
		line := field.Row(i)[radius:]
		for c := range field.Columns {
			line[c] = float64(field.Top + i + field.Left + c)
		}
	}
	return s
}

// apply adds the sums of the stars, line by line.
func (s *sweep) apply() {
	if s.firstRow >= s.lastRow || s.firstColumn >= s.lastColumn {
		return
	}
	radius := s.field.Width
	for i := s.firstRow; i < s.lastRow; i++ {
		lines, stride := s.field.Lines(i-radius, i+radius+1)
		s.addStars(s.out[i][s.firstColumn:s.lastColumn], lines[s.firstColumn:], stride, s.weights)
	}
}

// advance adds 1 to all elements.
func (s *sweep) advance() {
	for i := range s.field.Rows {
		s.increase(s.field.Row(i)[s.field.Width:][:s.field.Columns])
	}
}

// norm returns the sum of all results.
func (s *sweep) norm() (norm float64) {
	for i := s.firstRow; i < s.lastRow; i++ {
		for _, value := range s.out[i][min(s.firstColumn, s.lastColumn):s.lastColumn] {
			norm += math.Abs(value)
		}
	}
	return norm
}
