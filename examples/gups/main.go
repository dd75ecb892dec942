// Command gups is the RandomAccess kernel of the HPC Challenge. It measures how many random words of a shared table the
// ranks update per second.
//
//	go run ./cmd/rmarun -n 4 ./examples/gups
//	RMA_DEVICE=tcp go run ./cmd/rmarun -n 2 ./examples/gups -log 20
//
// The rules: the table has 2^n words, each initially its index. There are 4*2^n updates. Their values are one sequence
// of random numbers, of which each rank makes a part. Update i is table[r mod 2^n] ^= r, where r is number i of the
// sequence. A rank may look ahead at most 1024 updates. The updates are then made again, which restores each word. At
// most one word in a hundred may differ, because ranks that read, change and write a word at the same time lose
// updates. With -atomics no update is lost, and no word may differ.
package main

import (
	"context"
	"fmt"

	"github.com/onesided/rma/examples/globalarray"
	"github.com/onesided/rma/examples/internal/kernel"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

func main() { kernel.Main(newKernel()) }

// updatesPerWord and mostAhead are set by the rules.
const (
	updatesPerWord = 4
	mostAhead      = 1024
)

// job holds the flags.
type job struct {
	log, ahead int
	atomics    bool
}

func newKernel() *kernel.Kernel {
	j := &job{log: 22, ahead: mostAhead}
	return &kernel.Kernel{
		Name: "gups", About: "Updates random words of a table that the ranks share (RandomAccess of the HPC Challenge)",
		More: `The results are the rate in 10^9 updates a second (GUPS) and how many words are wrong when all updates have
been made a second time: one in a hundred at most, none with -atomics.`,
		Flags: func(f *kernel.Flags) {
			f.Number(&j.log, "log", 4, 40, "the table has 2^`n` words of 8 bytes")
			f.Number(&j.ahead, "ahead", 1, mostAhead, "look ahead `n` updates at most")
			f.BoolVar(&j.atomics, "atomics", true, "change words by atomic operations; -atomics=false reads them and writes them later")
		},
		Run: j.run,
	}
}

// promises returns the options of the table's window.
func (j *job) promises() []window.Option {
	if j.atomics {
		return []window.Option{window.SingleElement(), window.SameOp()}
	}
	return []window.Option{window.SingleElement()}
}

// An updater makes the updates of a rank.
type updater struct {
	rank    *kernel.Rank
	table   *globalarray.Array[uint64]
	mask    uint64
	values  []uint64
	indices []int
}

// stampBits is the number of low bits of an index that readAndWrite uses to tell words apart.
const stampBits = 20

func (j *job) run(ctx context.Context, r *kernel.Rank) error {
	words := 1 << j.log
	table, err := globalarray.New[uint64](ctx, r.World, words, globalarray.Blocks(), j.promises()...)
	if err != nil {
		return err
	}
	for i, word := range table.Local() {
		*word = uint64(i)
	}
	u := &updater{
		rank: r, table: table, mask: uint64(words - 1),
		values: make([]uint64, 0, j.ahead), indices: make([]int, 0, j.ahead),
	}
	updates := updatesPerWord * words
	first, last := part(updates, r.Rank(), r.Size())
	if err := table.Sync(ctx); err != nil {
		return err
	}
	begun := r.Now()
	if j.atomics {
		err = u.accumulate(ctx, first, last)
	} else {
		err = u.readAndWrite(ctx, first, last)
	}
	if err != nil {
		return err
	}
	if err := table.Sync(ctx); err != nil {
		return err
	}
	took := r.Now() - begun
	wrong, err := u.verify(ctx, r, first, last)
	if err != nil {
		return err
	}
	r.Result("rate", float64(updates)/float64(took.Nanoseconds()), "GUPS")
	r.Result("wrong", float64(wrong), fmt.Sprintf("of %d words", words))
	allowed := words / 100
	if j.atomics {
		allowed = 0
	}
	if err := table.Close(); err != nil {
		return err
	}
	if wrong > allowed {
		return fmt.Errorf("%w: %d words of %d are wrong; allowed are %d", kernel.ErrVerification, wrong, words, allowed)
	}
	return nil
}

// part returns the range of a rank, from first to before last.
func part(n, rank, ranks int) (first, last int) {
	share, more := n/ranks, n%ranks
	first = rank*share + min(rank, more)
	last = first + share
	if rank < more {
		last++
	}
	return first, last
}

// accumulate makes updates by atomic operations.
func (u *updater) accumulate(ctx context.Context, first, last int) error {
	all := last - first
	for value := jump(uint64(first)); first < last; {
		u.rank.Progress(all-(last-first), all)
		u.values, u.indices = u.values[:0], u.indices[:0]
		for n := min(cap(u.values), last-first); n > 0; n-- {
			value = next(value)
			u.values = append(u.values, value)
			u.indices = append(u.indices, int(value&u.mask))
		}
		first += len(u.values)
		if err := u.table.Accumulate(ctx, window.Xor, u.values, u.indices); err != nil {
			return err
		}
	}
	return nil
}

// readAndWrite makes updates in batches: it reads the words of a batch, and then writes them. No word occurs twice in a
// batch.
func (u *updater) readAndWrite(ctx context.Context, first, last int) error {
	previous := make([]uint64, cap(u.values))
	// stamps has the number of the last batch that updates a word. Its index is the low bits of the word's index.
	stamps, batch := make([]uint32, 1<<stampBits), uint32(0)
	for value := jump(uint64(first)); first < last; {
		u.values, u.indices = u.values[:0], u.indices[:0]
		batch++
		for n := min(cap(u.values), last-first); n > 0; n-- {
			following := next(value)
			stamp := &stamps[following&u.mask&(1<<stampBits-1)]
			if *stamp == batch {
				break
			}
			value, *stamp = following, batch
			u.values = append(u.values, value)
			u.indices = append(u.indices, int(value&u.mask))
		}
		first += len(u.values)
		words := previous[:len(u.values)]
		if err := u.table.FetchAndOp(ctx, window.NoOp, nil, words, u.indices); err != nil {
			return err
		}
		for i := range words {
			words[i] ^= u.values[i]
		}
		if err := u.table.Accumulate(ctx, window.Replace, words, u.indices); err != nil {
			return err
		}
	}
	return nil
}

// verify makes the updates again and returns the number of words that then differ from their index.
func (u *updater) verify(ctx context.Context, r *kernel.Rank, first, last int) (wrong int, err error) {
	if err := u.accumulate(ctx, first, last); err != nil {
		return 0, err
	}
	if err := u.table.Sync(ctx); err != nil {
		return 0, err
	}
	for i, word := range u.table.Local() {
		if *word != uint64(i) {
			wrong++
		}
	}
	sum := []int64{int64(wrong)}
	err = world.AllReduceOp(ctx, r.World, sum, sum, world.Sum)
	return int(sum[0]), err
}
