// Command indexgather reads random words of a table that the ranks share, as the kernel of that name of the bale
// suite does.
//
//	go run ./cmd/rmarun -n 4 ./examples/indexgather
//
// Each rank reads a given number of random words, several at a time, and checks each against its index.
package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/onesided/rma/examples/globalarray"
	"github.com/onesided/rma/examples/internal/kernel"
	"github.com/onesided/rma/world"
)

func main() { kernel.Main(newKernel()) }

// job holds the flags: reads and words of each rank, and the number of reads that go together.
type job struct{ reads, words, together int }

func newKernel() *kernel.Kernel {
	j := &job{reads: 1_000_000, words: 100_000, together: 1024}
	return &kernel.Kernel{
		Name: "indexgather", About: "Reads random words of a table that the ranks share (index gather of the bale suite)",
		More: `The result is the rate of all ranks together, in 10^6 reads a second, without the time in which they are checked.`,
		Flags: func(f *kernel.Flags) {
			f.Number(&j.reads, "n", 1, 1<<40, "read `n` words on each rank")
			f.Number(&j.words, "T", 1, 1<<34, "each rank has `n` words of the table")
			f.Number(&j.together, "b", 1, 1<<20, "read `n` words together")
		},
		Run: j.run,
	}
}

// content returns the word of an index.
func content(i int) int64 { return -int64(i) - 1 }

func (j *job) run(ctx context.Context, r *kernel.Rank) error {
	table, err := globalarray.New[int64](ctx, r.World, j.words*r.Size(), globalarray.Cyclic(1))
	if err != nil {
		return err
	}
	for i, word := range table.Local() {
		*word = content(i)
	}
	if err := table.Sync(ctx); err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(1, uint64(r.Rank())))
	indices, results := make([]int, min(j.together, j.reads)), make([]int64, min(j.together, j.reads))
	var took time.Duration
	wrong := []int64{0}
	for left := j.reads; left > 0; left -= len(indices) {
		r.Progress(j.reads-left, j.reads)
		indices = indices[:min(len(indices), left)]
		for i := range indices {
			indices[i] = random.IntN(table.Len())
		}
		begun := r.Now()
		if err := table.Gather(ctx, results[:len(indices)], indices); err != nil {
			return err
		}
		took += r.Now() - begun
		for i, index := range indices {
			if results[i] != content(index) {
				wrong[0]++
			}
			results[i] = 0
		}
	}
	longest := []int64{int64(took)}
	if err := world.AllReduceOp(ctx, r.World, longest, longest, world.Max); err != nil {
		return err
	}
	if err := world.AllReduceOp(ctx, r.World, wrong, wrong, world.Sum); err != nil {
		return err
	}
	all := j.reads * r.Size()
	r.Result("rate", float64(all)/float64(longest[0])*1e3, "Mop/s")
	r.Result("wrong", float64(wrong[0]), fmt.Sprintf("of %d", all))
	if err := table.Close(); err != nil {
		return err
	}
	if wrong[0] > 0 {
		return fmt.Errorf("%w: %d of %d reads gave another word", kernel.ErrVerification, wrong[0], all)
	}
	return nil
}
