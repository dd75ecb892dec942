package cases

import (
	"context"

	"github.com/onesided/rma/window"
)

// The steps of the passive cases. Rank 0 runs them on rank 1's window, under LockAll, as in peers/mpi_rma.c.

func putFlush(ctx context.Context, b *Buffers, n int) error {
	if err := b.bytes.Put(b.buffer[:n], 1, 0); err != nil {
		return err
	}
	return b.bytes.Flush(ctx, 1)
}

func getFlush(ctx context.Context, b *Buffers, n int) error {
	if err := b.bytes.Get(b.buffer[:n], 1, 0); err != nil {
		return err
	}
	return b.bytes.Flush(ctx, 1)
}

func accFlush(ctx context.Context, b *Buffers, n int) error {
	if err := b.floats.Accumulate(window.Sum, b.addends[:n/8], 1, 0); err != nil {
		return err
	}
	return b.floats.Flush(ctx, 1)
}

func fopFlush(ctx context.Context, b *Buffers, _ int) error {
	if err := b.ints.FetchAndOp(window.Sum, b.operands[0], &b.result, 1, 0); err != nil {
		return err
	}
	return b.ints.Flush(ctx, 1)
}

func casFlush(ctx context.Context, b *Buffers, _ int) error {
	if err := b.ints.CompareAndSwap(b.operands[1], b.operands[0], &b.result, 1, 0); err != nil {
		return err
	}
	return b.ints.Flush(ctx, 1)
}

func putMany(ctx context.Context, b *Buffers, n int) error {
	for j := range InFlight {
		from := (j * n) % streamFrom
		if err := b.bytes.Put(b.buffer[from:from+n], 1, (j*n)%streamTo); err != nil {
			return err
		}
	}
	return b.bytes.Flush(ctx, 1)
}

func getMany(ctx context.Context, b *Buffers, n int) error {
	for j := range InFlight {
		to := (j * n) % streamFrom
		if err := b.bytes.Get(b.buffer[to:to+n], 1, (j*n)%streamTo); err != nil {
			return err
		}
	}
	return b.bytes.Flush(ctx, 1)
}

// scatter puts 8 bytes n times at random displacements of rank 1.
func scatter(b *Buffers, n int) error {
	for j := range n {
		from := (j % scatteredFrom) * 8
		if err := b.bytes.Put(b.buffer[from:from+8], 1, b.spot()*8); err != nil {
			return err
		}
	}
	return nil
}

func scatterMany(ctx context.Context, b *Buffers, n int) error {
	if err := scatter(b, n); err != nil {
		return err
	}
	return b.bytes.Flush(ctx, 1)
}

func updateMany(ctx context.Context, b *Buffers, n int) error {
	for range n {
		if err := b.words.Accumulate(window.Xor, b.masks[:1], 1, b.spot()); err != nil {
			return err
		}
	}
	return b.words.Flush(ctx, 1)
}

func countMany(ctx context.Context, b *Buffers, n int) error {
	for range n {
		if err := b.ints.Accumulate(window.Sum, b.operands[:1], 1, b.spot()); err != nil {
			return err
		}
	}
	return b.ints.Flush(ctx, 1)
}

// countEach makes the accumulates of countMany by one call.
func countEach(ctx context.Context, b *Buffers, n int) error {
	if len(b.counts) != n {
		b.counts, b.places = make([]int64, n), make([]int, n)
	}
	for i := range b.places {
		b.places[i] = b.spot()
	}
	if err := b.ints.AccumulateEach(window.Sum, b.counts, 1, b.places); err != nil {
		return err
	}
	return b.ints.Flush(ctx, 1)
}

func rowMany(ctx context.Context, b *Buffers, n int) error {
	for j := range n {
		from := j * 16
		if err := b.bytes.Put(b.buffer[from:from+8], 1, j*8); err != nil {
			return err
		}
	}
	return b.bytes.Flush(ctx, 1)
}

func mixedMany(ctx context.Context, b *Buffers, n int) error {
	for j := range n / 2 {
		if err := b.words.Accumulate(window.Xor, b.masks[:1], 1, b.spot()); err != nil {
			return err
		}
		to := j * 8
		if err := b.bytes.Get(b.buffer[to:to+8], 1, b.spot()*8); err != nil {
			return err
		}
	}
	return b.bytes.Flush(ctx, 1)
}

// rowsOfChange is the number of epochs of row_rate for one of overlap_put_lat in changing_lat. On simulated cards both
// take about as long.
const rowsOfChange = 100

func changing(ctx context.Context, b *Buffers, n int) error {
	for range rowsOfChange {
		if err := rowMany(ctx, b, rowLength); err != nil {
			return err
		}
	}
	return putCompute(ctx, b, n)
}

// putCompute computes for about as long as the put takes over loopback. In virtual time it computes for as long as a
// processor of the profiles does.
func putCompute(ctx context.Context, b *Buffers, n int) error {
	if err := b.bytes.Put(b.buffer[:n], 1, 0); err != nil {
		return err
	}
	b.compute(n / 4)
	return b.bytes.Flush(ctx, 1)
}
