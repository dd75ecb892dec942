package world_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/onesided/rma/world"
)

// Four ranks of this process add up their numbers.
func ExampleRun() {
	err := world.Run(context.Background(), 4, func(ctx context.Context, w *world.World) error {
		sum := make([]int, 1)
		if err := world.AllReduce(ctx, w, []int{w.Rank() + 1}, sum, func(a, b int) int { return a + b }); err != nil {
			return err
		}
		if w.Rank() == 0 {
			fmt.Println("sum over", w.Size(), "ranks:", sum[0])
		}
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: sum over 4 ranks: 10
}

// The same program is a rank under a launcher and a world of one without.
func ExampleInit() {
	ctx := context.Background()
	w, err := world.Init(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer w.Close()
	fmt.Printf("rank %d of %d\n", w.Rank(), w.Size())
	// Output: rank 0 of 1
}

// An operation that is known here takes much less time than a function does.
func ExampleAllReduceOp() {
	_ = world.Run(context.Background(), 3, func(ctx context.Context, w *world.World) error {
		counts := []int64{1, int64(w.Rank()), 10}
		if err := world.AllReduceOp(ctx, w, counts, counts, world.Sum); err != nil {
			return err
		}
		if w.Rank() == 2 {
			fmt.Println(counts)
		}
		return nil
	})
	// Output: [3 3 30]
}

// Any associative and commutative function reduces, over any type without pointers.
func ExampleAllReduce() {
	type extent struct{ Low, High float64 }
	union := func(a, b extent) extent { return extent{min(a.Low, b.Low), max(a.High, b.High)} }
	_ = world.Run(context.Background(), 3, func(ctx context.Context, w *world.World) error {
		mine := extent{float64(-w.Rank()), float64(10 * w.Rank())}
		all := make([]extent, 1)
		if err := world.AllReduce(ctx, w, []extent{mine}, all, union); err != nil {
			return err
		}
		if w.Rank() == 1 {
			fmt.Println(all[0])
		}
		return nil
	})
	// Output: {-2 20}
}

// Part r of what a rank has goes to rank r.
func ExampleAllToAll() {
	_ = world.Run(context.Background(), 3, func(ctx context.Context, w *world.World) error {
		in, out := make([]int, 3), make([]int, 3)
		for to := range in {
			in[to] = 10*w.Rank() + to
		}
		if err := world.AllToAll(ctx, w, in, out); err != nil {
			return err
		}
		if w.Rank() == 2 {
			fmt.Println(out)
		}
		return nil
	})
	// Output: [2 12 22]
}

// Ranks that disagree hear of it, all of them.
func ExampleBroadcast_mismatch() {
	_ = world.Run(context.Background(), 2, func(ctx context.Context, w *world.World) error {
		err := world.Broadcast(ctx, w, 0, make([]int32, 3+w.Rank()))
		if w.Rank() == 1 {
			fmt.Println(errors.Is(err, world.ErrMismatch), err)
		}
		return nil
	})
	// Output: true world: Broadcast: ranks disagree: collective 1, Broadcast: rank 0 has 3 elements of int32, rank 1 has 4
}

// Ranks in two rows of three add up along their rows and along their columns.
func ExampleWorld_Split() {
	err := world.Run(context.Background(), 6, func(ctx context.Context, w *world.World) error {
		row, err := w.Split(ctx, w.Rank()/3, w.Rank())
		if err != nil {
			return err
		}
		column, err := w.Split(ctx, w.Rank()%3, w.Rank())
		if err != nil {
			return err
		}
		along, down := make([]int, 1), make([]int, 1)
		plus := func(a, b int) int { return a + b }
		if err := world.AllReduce(ctx, row, []int{w.Rank()}, along, plus); err != nil {
			return err
		}
		if err := world.AllReduce(ctx, column, []int{w.Rank()}, down, plus); err != nil {
			return err
		}
		if w.Rank() == 4 {
			fmt.Println("rank", row.Rank(), "of its row, which has", along[0], "and", column.Rank(), "of its column, which has", down[0])
		}
		return errors.Join(column.Close(), row.Close())
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: rank 1 of its row, which has 12 and 1 of its column, which has 5
}
