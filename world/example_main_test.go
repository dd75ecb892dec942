package world_test

import (
	"context"
	"fmt"

	"github.com/onesided/rma/world"
)

// The program of every rank. With world.Main(count) as its main function a program is complete: plainly started its ranks
// are goroutines, RMA_RANKS=4 of them, and under a launcher they are processes.
func count(ctx context.Context, w *world.World) error {
	ranks := make([]int64, 1)
	if err := world.AllReduceOp(ctx, w, []int64{1}, ranks, world.Sum); err != nil {
		return err
	}
	if w.Rank() == 0 {
		fmt.Println("all ranks have come:", ranks[0] == int64(w.Size()))
	}
	return nil
}

func ExampleMain() {
	world.Main(count)
	// Output: all ranks have come: true
}
