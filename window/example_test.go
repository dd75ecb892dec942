package window_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// Each rank puts its number to its right neighbour, between two fences.
func Example() {
	err := world.Run(context.Background(), 4, func(ctx context.Context, w *world.World) error {
		win, err := window.Allocate[int64](ctx, w, 1)
		if err != nil {
			return err
		}
		if err := win.Fence(ctx, window.NoPrecede); err != nil {
			return err
		}
		if err := win.Put([]int64{int64(w.Rank())}, (w.Rank()+1)%w.Size(), 0); err != nil {
			return err
		}
		if err := win.Fence(ctx, window.NoSucceed); err != nil {
			return err
		}
		left := make([]int64, w.Size())
		if err := world.Gather(ctx, w, 0, win.Local(), left); err != nil {
			return err
		}
		if w.Rank() == 0 {
			fmt.Println(left)
		}
		return win.Close()
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: [3 0 1 2]
}

// All ranks draw numbers from one counter, whose owner takes no part.
func ExampleWindow_FetchAndOp() {
	err := world.Run(context.Background(), 3, func(ctx context.Context, w *world.World) error {
		counter, err := window.Allocate[int64](ctx, w, 1, window.SingleElement())
		if err != nil {
			return err
		}
		if err := counter.LockAll(ctx); err != nil {
			return err
		}
		var ticket int64
		for range 10 {
			if err := counter.FetchAndOp(window.Sum, 1, &ticket, 0, 0); err != nil {
				return err
			}
			if err := counter.FlushLocal(ctx, 0); err != nil {
				return err
			}
		}
		if err := counter.UnlockAll(ctx); err != nil {
			return err
		}
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		if w.Rank() == 0 {
			fmt.Println(counter.Local()[0], "numbers were drawn")
		}
		return counter.Close()
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: 30 numbers were drawn
}

// A rank puts into all others side by side, and computes until all has come there.
func ExampleWindow_RFlush() {
	err := world.Run(context.Background(), 3, func(ctx context.Context, w *world.World) error {
		win, err := window.Allocate[int64](ctx, w, w.Size())
		if err != nil {
			return err
		}
		if err := win.LockAll(ctx); err != nil {
			return err
		}
		flushes := make([]window.Request, w.Size())
		for target := range flushes {
			if err := win.Put([]int64{int64(w.Rank() + 1)}, target, w.Rank()); err != nil {
				return err
			}
			if flushes[target], err = win.RFlush(target); err != nil {
				return err
			}
		}
		w.Compute(time.Millisecond)
		if err := window.WaitAll(ctx, flushes...); err != nil {
			return err
		}
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		if w.Rank() == 0 {
			fmt.Println(win.Local())
		}
		if err := win.UnlockAll(ctx); err != nil {
			return err
		}
		return win.Close()
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: [1 2 3]
}

// A column of a matrix that lies in rows is a strided layout.
func ExampleStrided() {
	const rows, columns = 3, 4
	err := world.Run(context.Background(), 1, func(ctx context.Context, w *world.World) error {
		matrix, err := window.Allocate[float64](ctx, w, rows*columns)
		if err != nil {
			return err
		}
		if err := matrix.Lock(ctx, window.Exclusive, 0); err != nil {
			return err
		}
		column := window.Strided(rows, 1, columns)
		if err := matrix.PutLayout([]float64{1, 2, 3}, window.Contiguous(rows), 0, 2, column); err != nil {
			return err
		}
		if err := matrix.Unlock(ctx, 0); err != nil {
			return err
		}
		for row := range rows {
			fmt.Println(matrix.Local()[row*columns : (row+1)*columns])
		}
		return matrix.Close()
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// [0 0 1 0]
	// [0 0 2 0]
	// [0 0 3 0]
}
