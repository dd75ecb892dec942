// Command histogram counts random numbers in a table that the ranks share, as the kernel of that name of the bale
// suite does.
//
//	go run ./cmd/rmarun -n 4 ./examples/histogram
//
// Each rank adds one to random words of the table, several words at a time. For the verification it then subtracts the
// same again, after which all words must be zero.
package main

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/onesided/rma/examples/globalarray"
	"github.com/onesided/rma/examples/internal/kernel"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

func main() { kernel.Main(newKernel()) }

// job holds the flags: updates and words of each rank, and the number of updates that go together.
type job struct{ updates, words, together int }

func newKernel() *kernel.Kernel {
	j := &job{updates: 1_000_000, words: 1000, together: 1024}
	return &kernel.Kernel{
		Name: "histogram", About: "Adds to random words of a table that the ranks share (histogram of the bale suite)",
		More: `The result is the rate of all ranks together, in 10^6 additions a second.`,
		Flags: func(f *kernel.Flags) {
			f.Number(&j.updates, "n", 1, 1<<40, "make `n` additions on each rank")
			f.Number(&j.words, "T", 1, 1<<34, "each rank has `n` words of the table")
			f.Number(&j.together, "b", 1, 1<<20, "make `n` additions together")
		},
		Run: j.run,
	}
}

func (j *job) run(ctx context.Context, r *kernel.Rank) error {
	table, err := globalarray.New[int64](ctx, r.World, j.words*r.Size(), globalarray.Cyclic(1), window.SingleElement(), window.SameOp())
	if err != nil {
		return err
	}
	if err := table.Sync(ctx); err != nil {
		return err
	}
	begun := r.Now()
	if err := j.add(ctx, r, table, 1); err != nil {
		return err
	}
	if err := table.Sync(ctx); err != nil {
		return err
	}
	took := r.Now() - begun
	total, err := sum(ctx, r, table)
	if err != nil {
		return err
	}
	if err := j.add(ctx, r, table, -1); err != nil {
		return err
	}
	if err := table.Sync(ctx); err != nil {
		return err
	}
	wrong := []int64{0}
	for _, word := range table.Local() {
		if *word != 0 {
			wrong[0]++
		}
	}
	if err := world.AllReduceOp(ctx, r.World, wrong, wrong, world.Sum); err != nil {
		return err
	}
	all := int64(j.updates) * int64(r.Size())
	r.Result("rate", float64(all)/float64(took.Nanoseconds())*1e3, "Mop/s")
	r.Result("counted", float64(total), fmt.Sprintf("of %d", all))
	if err := table.Close(); err != nil {
		return err
	}
	if total != all || wrong[0] > 0 {
		return fmt.Errorf("%w: %d of %d additions were counted, and %d words are not zero when they are taken back", kernel.ErrVerification, total, all, wrong[0])
	}
	return nil
}

// add adds a number to random words, the same words each time.
func (j *job) add(ctx context.Context, r *kernel.Rank, table *globalarray.Array[int64], number int64) error {
	random := rand.New(rand.NewPCG(1, uint64(r.Rank())))
	indices, values := make([]int, min(j.together, j.updates)), make([]int64, min(j.together, j.updates))
	for i := range values {
		values[i] = number
	}
	for left := j.updates; left > 0; left -= len(indices) {
		r.Progress(j.updates-left, j.updates)
		indices = indices[:min(len(indices), left)]
		for i := range indices {
			indices[i] = random.IntN(table.Len())
		}
		if err := table.Accumulate(ctx, window.Sum, values[:len(indices)], indices); err != nil {
			return err
		}
	}
	return nil
}

// sum returns the sum of all words.
func sum(ctx context.Context, r *kernel.Rank, table *globalarray.Array[int64]) (int64, error) {
	total := []int64{0}
	for _, word := range table.Local() {
		total[0] += *word
	}
	// It returns on no rank before every rank has summed up.
	err := world.AllReduceOp(ctx, r.World, total, total, world.Sum)
	return total[0], err
}
