package course_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// run runs body on ranks that are goroutines. Processes would call world.Init.
func run(ranks int, body func(ctx context.Context, w *world.World) error) {
	if err := world.Run(context.Background(), ranks, body); err != nil {
		log.Fatal(err)
	}
}

// Each rank puts its number into the memory of the next one.
func Example_firstWindow() {
	run(2, func(ctx context.Context, w *world.World) error {
		win, err := window.Allocate[int64](ctx, w, 10) // ten elements on each rank
		if err != nil {
			return err
		}
		next := (w.Rank() + 1) % w.Size()
		mine := []int64{100 + int64(w.Rank())}
		err = errors.Join(
			win.Fence(ctx), // opens an epoch
			win.Put(mine, next, 3),
			win.Fence(ctx, window.NoSucceed), // completes all puts
		)
		if err != nil {
			return err
		}
		if w.Rank() == 0 {
			fmt.Println(win.Local()[3])
		}
		return win.Close()
	})
	// Output: 101
}

// Each fence ends one epoch and opens the next, once a step.
func Example_fence() {
	run(3, func(ctx context.Context, w *world.World) error {
		win, err := window.Allocate[float64](ctx, w, 2)
		if err != nil {
			return err
		}
		win.Local()[0] = float64(w.Rank())
		err = win.Fence(ctx)
		for step := 0; step < 4 && err == nil; step++ {
			// One element is read and the other written. They swap roles in each step.
			from, to := step%2, 1-step%2
			value := []float64{win.Local()[from] + 1}
			err = errors.Join(win.Put(value, (w.Rank()+1)%w.Size(), to), win.Fence(ctx))
		}
		if err = errors.Join(err, win.Fence(ctx, window.NoSucceed)); err != nil {
			return err
		}
		if w.Rank() == 1 {
			fmt.Println(win.Local()[0])
		}
		return win.Close()
	})
	// Output: 4
}

// Only neighbors wait for each other.
func Example_groups() {
	run(4, func(ctx context.Context, w *world.World) error {
		win, err := window.Allocate[int64](ctx, w, 1)
		if err != nil {
			return err
		}
		before, next := (w.Rank()+3)%4, (w.Rank()+1)%4
		origins, err := win.Group(before)
		if err != nil {
			return err
		}
		targets, err := win.Group(next)
		if err != nil {
			return err
		}
		if err := win.Post(ctx, origins); err != nil { // the previous rank may put here
			return err
		}
		if err := win.Start(ctx, targets); err != nil { // opens the epoch to the next rank
			return err
		}
		// Complete ends the epoch even if Put returns an error.
		err = errors.Join(win.Put([]int64{int64(w.Rank())}, next, 0), win.Complete(ctx))
		if err != nil {
			return err
		}
		if err := win.Wait(ctx); err != nil { // the previous rank's put is complete
			return err
		}
		if w.Rank() == 2 {
			fmt.Println("from rank", win.Local()[0])
		}
		return win.Close()
	})
	// Output: from rank 1
}

// A lock lets a rank change two elements together. A single counter would need no lock.
func Example_locks() {
	run(3, func(ctx context.Context, w *world.World) error {
		account, err := window.Allocate[int64](ctx, w, 2)
		if err != nil {
			return err
		}
		for range 5 {
			both := make([]int64, 2)
			if err := account.Lock(ctx, window.Exclusive, 0); err != nil {
				return err
			}
			if err := errors.Join(account.Get(both, 0, 0), account.Flush(ctx, 0)); err != nil {
				return err
			}
			both[0], both[1] = both[0]+1, both[1]-1
			if err := errors.Join(account.Put(both, 0, 0), account.Unlock(ctx, 0)); err != nil {
				return err
			}
		}
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		if w.Rank() == 0 {
			fmt.Println(account.Local())
		}
		return account.Close()
	})
	// Output: [15 -15]
}

// One rank waits for data of another; no other rank waits.
func Example_notify() {
	run(2, func(ctx context.Context, w *world.World) error {
		const slot = 5
		win, err := window.Allocate[int64](ctx, w, 4)
		if err != nil {
			return err
		}
		if err := win.LockAll(ctx, window.NoCheck); err != nil {
			return err
		}
		if w.Rank() == 0 {
			err = win.PutNotify([]int64{7, 8, 9}, 1, 1, slot)
		} else if err = win.WaitNotify(ctx, slot, 1); err == nil {
			fmt.Println(win.Local())
		}
		return errors.Join(err, win.UnlockAll(context.WithoutCancel(ctx)), win.Close())
	})
	// Output: [0 7 8 9]
}

// A work queue: a rank that draws a ticket does the piece of work with that number. FlushLocal makes the ticket valid.
func Example_tickets() {
	run(3, func(ctx context.Context, w *world.World) error {
		const pieces = 12
		next, err := window.Allocate[int64](ctx, w, 1) // on rank 0: the next ticket
		if err != nil {
			return err
		}
		if err := next.LockAll(ctx, window.NoCheck); err != nil {
			return err
		}
		done := []int64{0}
		for {
			var ticket int64 // the element before 1 is added
			if err := next.FetchAndOp(window.Sum, 1, &ticket, 0, 0); err != nil {
				return err
			}
			if err := next.FlushLocal(ctx, 0); err != nil {
				return err
			}
			if ticket >= pieces {
				break
			}
			done[0] += ticket // the work
		}
		if err := world.AllReduceOp(ctx, w, done, done, world.Sum); err != nil {
			return err
		}
		if w.Rank() == 0 {
			fmt.Println(done[0])
		}
		return errors.Join(next.UnlockAll(context.WithoutCancel(ctx)), next.Close())
	})
	// Output: 66
}

// A rank reads from all ranks at once, and works on each block when it arrives.
func Example_requests() {
	run(3, func(ctx context.Context, w *world.World) error {
		const each = 4
		win, err := window.Allocate[int64](ctx, w, each)
		if err != nil {
			return err
		}
		for i := range win.Local() {
			win.Local()[i] = int64(w.Rank())
		}
		// After the barrier every rank sees what the others have stored.
		if err := errors.Join(win.LockAll(ctx, window.NoCheck), w.Barrier(ctx)); err != nil {
			return err
		}
		blocks, gets := make([][each]int64, w.Size()), make([]window.Request, w.Size())
		for rank := range gets {
			if gets[rank], err = win.RGet(blocks[rank][:], rank, 0); err != nil {
				return err
			}
		}
		sum := int64(0)
		for rank, err := range window.Completed(ctx, gets...) {
			if err != nil {
				return err
			}
			for _, value := range blocks[rank] { // the work
				sum += value
			}
		}
		if w.Rank() == 0 {
			fmt.Println(sum)
		}
		return errors.Join(win.UnlockAll(context.WithoutCancel(ctx)), win.Close())
	})
	// Output: 12
}

// Many operations and one flush. SingleElement lets the processor's atomics do the accumulates.
func Example_fast() {
	run(2, func(ctx context.Context, w *world.World) error {
		const words = 1000
		table, err := window.Allocate[uint64](ctx, w, words, window.SingleElement())
		if err != nil {
			return err
		}
		if err := table.LockAll(ctx, window.NoCheck); err != nil {
			return err
		}
		one := []uint64{1}
		for i := range 5000 {
			at := i * 7919 % (2 * words)
			if err := table.Accumulate(window.Sum, one, at/words, at%words); err != nil {
				return err
			}
		}
		// One flush completes all of them.
		if err := errors.Join(table.FlushAll(ctx), w.Barrier(ctx)); err != nil {
			return err
		}
		sum := []uint64{0}
		for _, n := range table.Local() {
			sum[0] += n
		}
		if err := world.AllReduceOp(ctx, w, sum, sum, world.Sum); err != nil {
			return err
		}
		if w.Rank() == 0 {
			fmt.Println(sum[0])
		}
		return errors.Join(table.UnlockAll(context.WithoutCancel(ctx)), table.Close())
	})
	// Output: 10000
}

// This process is a rank of the job for which it was started, or the only rank of its own job.
func Example_cluster() {
	ctx := context.Background()
	w, err := world.Init(ctx)
	if err != nil {
		log.Fatal(err)
	}
	win, err := window.Allocate[int64](ctx, w, 1)
	if err != nil {
		log.Fatal(err)
	}
	for rank := range w.Size() {
		if rank != w.Rank() {
			fmt.Println("rank", rank, "is reached by", w.Route(rank))
		}
	}
	fmt.Println("rank", w.Rank(), "of", w.Size(), "exposes", win.Len(w.Rank()), "element")
	if err := errors.Join(win.Close(), w.Close()); err != nil {
		log.Fatal(err)
	}
	// Output: rank 0 of 1 exposes 1 element
}

// A rank fails, and the others continue without it.
func Example_failure() {
	broken := errors.New("the disk is full")
	err := world.Run(context.Background(), 3, func(ctx context.Context, w *world.World) error {
		if w.Rank() == 2 {
			return broken
		}
		err := w.Barrier(ctx)
		var failed *world.PeerError
		if !errors.As(err, &failed) {
			return fmt.Errorf("a barrier without rank 2: %v", err)
		}
		rest, err := w.Shrink(ctx)
		if err != nil {
			return err
		}
		if rest.Rank() == 0 {
			fmt.Println("rank", failed.Rank, "has failed,", rest.Size(), "go on")
		}
		return errors.Join(rest.Barrier(ctx), rest.Close())
	})
	fmt.Println(errors.Is(err, broken))
	// Output:
	// rank 2 has failed, 2 go on
	// true
}

// The calls of a typical MPI program, line by line:
//
//	MPI_Win_allocate(n*sizeof(double), sizeof(double), MPI_INFO_NULL, comm, &base, &win);
//	MPI_Win_lock_all(MPI_MODE_NOCHECK, win);
//	MPI_Accumulate(x, 2, MPI_DOUBLE, target, disp, 2, MPI_DOUBLE, MPI_SUM, win);
//	MPI_Win_flush(target, win);
//	MPI_Win_unlock_all(win);
//	MPI_Win_free(&win);
func Example_fromMPI() {
	run(2, func(ctx context.Context, w *world.World) error {
		win, err := window.Allocate[float64](ctx, w, 8)
		if err != nil {
			return err
		}
		if err := win.LockAll(ctx, window.NoCheck); err != nil {
			return err
		}
		x, target, disp := []float64{0.5, 0.25}, 1, 6
		if err := win.Accumulate(window.Sum, x, target, disp); err != nil {
			return err
		}
		if err := win.Flush(ctx, target); err != nil {
			return err
		}
		if err := win.UnlockAll(ctx); err != nil {
			return err
		}
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		if w.Rank() == 1 {
			fmt.Println(win.Local()[6:])
		}
		return win.Close()
	})
	// Output: [1 0.5]
}
