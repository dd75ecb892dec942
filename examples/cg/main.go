// Command cg solves a system of linear equations with a sparse matrix by conjugate gradients. The rows of the matrix
// and the elements of vectors are distributed over the ranks. In each iteration a rank gathers the elements of other
// ranks that its rows need.
//
//	go run ./cmd/rmarun -n 4 ./examples/cg
//	go run ./cmd/rmarun -n 2 ./examples/cg -n 1000000 -bands 3
//
// The matrix is that of a network. For each of several pairs a and b, element i has the neighbor a*i+b mod n, where a
// has no common factor with n. The neighbor relation is symmetric. A row has -1 for each neighbor, and in its diagonal
// 1 more than the number of neighbors. So the matrix is symmetric and positive definite, whatever the network, and no
// order of its rows would save messages. The solution is known.
package main

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/onesided/rma/examples/globalarray"
	"github.com/onesided/rma/examples/internal/kernel"
	"github.com/onesided/rma/world"
)

func main() { kernel.Main(newKernel()) }

// job holds the flags.
type job struct{ size, bands, most, digits int }

func newKernel() *kernel.Kernel {
	j := &job{size: 200_000, bands: 4, most: 500, digits: 9}
	return &kernel.Kernel{
		Name: "cg", About: "Solves a system of linear equations with a sparse matrix by conjugate gradients",
		More: `The results are the rate in 10^6 floating point operations a second, the mean time of an iteration, that of it in
which elements were gathered, of rank 0, how many iterations there were, and by how much an element is off at most.`,
		Flags: func(f *kernel.Flags) {
			f.Number(&j.size, "n", 2, 1<<30, "the matrix has `n` rows")
			f.Number(&j.bands, "bands", 1, 64, "an element has `n` neighbors, and is one of as many")
			f.Number(&j.most, "iterations", 1, 1<<30, "make `n` iterations at most")
			f.Number(&j.digits, "digits", 1, 13, "stop when the residual is so small by `n` digits")
		},
		Run: j.run,
	}
}

// steps returns the numbers by which neighbors are found: a and b of each band.
func (j *job) steps() (steps [][2]int) {
	a := j.size/3*2 + 1
	for len(steps) < j.bands {
		for ; common(a%j.size, j.size) != 1; a++ {
		}
		steps = append(steps, [2]int{a % j.size, (7919*len(steps) + 1) % j.size})
		a += 2*len(steps) + 1
	}
	return steps
}

func common(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// inverse returns the inverse of a modulo n, which have no common factor.
func inverse(a, n int) int {
	x, y, r, s := 1, 0, a, n
	for s != 0 {
		q := r / s
		r, s = s, r-q*s
		x, y = y, x-q*y
	}
	return (x%n + n) % n
}

// A system is a rank's part of the work.
type system struct {
	rank  *kernel.Rank
	width int
	// direction is the vector by which the matrix is multiplied. elements has the rank's own part of it, and after
	// that the elements that were gathered, of indices.
	direction *globalarray.Array[float64]
	elements  []float64
	indices   []int
	// neighbors are the indices in elements of the neighbors of each row, width of them a row.
	neighbors []int32
	gathering float64
}

// newSystem determines which elements this rank's rows need.
func newSystem(j *job, r *kernel.Rank, direction *globalarray.Array[float64]) *system {
	own := len(direction.Part())
	s := &system{rank: r, width: 2 * j.bands, direction: direction, neighbors: make([]int32, 0, 2*j.bands*own)}
	first := direction.Index(r.Rank(), 0)
	steps, places := j.steps(), make(map[int]int32)
	find := func(index int) {
		if index >= first && index < first+own {
			s.neighbors = append(s.neighbors, int32(index-first))
			return
		}
		place, known := places[index]
		if !known {
			place = int32(own + len(s.indices))
			places[index] = place
			s.indices = append(s.indices, index)
		}
		s.neighbors = append(s.neighbors, place)
	}
	for i := first; i < first+own; i++ {
		for _, step := range steps {
			find((step[0]*i + step[1]) % j.size)
			find(inverse(step[0], j.size) * ((i - step[1] + j.size) % j.size) % j.size)
		}
	}
	s.elements = make([]float64, own+len(s.indices))
	return s
}

// multiply multiplies the matrix by a vector, of which each rank has its part.
func (s *system) multiply(ctx context.Context, product, vector []float64) error {
	begun := s.rank.Now()
	copy(s.direction.Part(), vector)
	if err := s.direction.Sync(ctx); err != nil {
		return err
	}
	own := copy(s.elements, vector)
	if err := s.direction.Gather(ctx, s.elements[own:], s.indices); err != nil {
		return err
	}
	s.gathering += (s.rank.Now() - begun).Seconds()
	diagonal := float64(s.width + 1)
	for i := range product {
		sum := diagonal * s.elements[i]
		for _, place := range s.neighbors[i*s.width:][:s.width] {
			sum -= s.elements[place]
		}
		product[i] = sum
	}
	return nil
}

// dot returns the inner product of two vectors. It returns on no rank before all have called it. So all ranks have
// gathered the last direction by then.
func (s *system) dot(ctx context.Context, a, b []float64) (float64, error) {
	sum := []float64{0}
	for i := range a {
		sum[0] += a[i] * b[i]
	}
	err := world.AllReduceOp(ctx, s.rank.World, sum, sum, world.Sum)
	return sum[0], err
}

// solution returns the expected solution for an element.
func solution(index int) float64 { return math.Sin(float64(index)) + 2 }

func (j *job) run(ctx context.Context, r *kernel.Rank) error {
	direction, err := globalarray.New[float64](ctx, r.World, j.size, globalarray.Blocks())
	if err != nil {
		return err
	}
	s := newSystem(j, r, direction)
	own := len(direction.Part())
	wanted, right := make([]float64, own), make([]float64, own)
	for i := range wanted {
		wanted[i] = solution(direction.Index(r.Rank(), i))
	}
	if err := s.multiply(ctx, right, wanted); err != nil {
		return err
	}
	// The direction must not change before all ranks have read what they gather.
	if err := r.Barrier(ctx); err != nil {
		return err
	}
	s.gathering = 0
	begun := r.Now().Seconds()
	found, iterations, err := j.solve(ctx, s, right)
	if err != nil {
		return err
	}
	took := []float64{r.Now().Seconds() - begun}
	if err := world.AllReduceOp(ctx, r.World, took, took, world.Max); err != nil {
		return err
	}
	off := []float64{0}
	for i := range found {
		off[0] = max(off[0], math.Abs(found[i]-wanted[i]))
	}
	if err := world.AllReduceOp(ctx, r.World, off, off, world.Max); err != nil {
		return err
	}
	each := took[0] / float64(iterations)
	r.Result("rate", 1e-6*float64(j.size)*float64(s.width+2+10)/each, "MFlop/s")
	r.Result("iteration", 1e6*each, "us")
	r.Result("gathering", 1e6*s.gathering/float64(iterations), "us")
	r.Result("iterations", float64(iterations), "")
	r.Result("off", off[0], "")
	if err := direction.Close(); err != nil {
		return err
	}
	// The smallest eigenvalue is 1, so the error of an element is at most the length of the residual.
	if length := math.Sqrt(float64(j.size)) * 4 * float64(2*s.width+1); off[0] > length*math.Pow10(-j.digits) {
		return fmt.Errorf("%w: after %d iterations an element is off by %v", kernel.ErrVerification, iterations, off[0])
	}
	return nil
}

// solve returns this rank's part of the solution.
func (j *job) solve(ctx context.Context, s *system, right []float64) (found []float64, iterations int, err error) {
	found, residual, direction, product := make([]float64, len(right)), slices.Clone(right), slices.Clone(right), make([]float64, len(right))
	square, err := s.dot(ctx, residual, residual)
	enough := square * math.Pow10(-2*j.digits)
	for err == nil && square > enough && iterations < j.most {
		iterations++
		if err = s.multiply(ctx, product, direction); err != nil {
			break
		}
		var along float64
		if along, err = s.dot(ctx, direction, product); err != nil {
			break
		}
		alpha := square / along
		for i := range found {
			found[i] += alpha * direction[i]
			residual[i] -= alpha * product[i]
		}
		last := square
		if square, err = s.dot(ctx, residual, residual); err != nil {
			break
		}
		beta := square / last
		for i := range direction {
			direction[i] = residual[i] + beta*direction[i]
		}
	}
	return found, max(iterations, 1), err
}
