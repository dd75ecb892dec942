package cases

import "context"

// The steps of the active cases are those of peers/mpi_rma.c, except halo.

func fencePut(ctx context.Context, b *Buffers, n int) error {
	if err := b.bytes.Put(b.buffer[:n], 1, 0); err != nil {
		return err
	}
	return b.bytes.Fence(ctx)
}

func fenceOnly(ctx context.Context, b *Buffers, _ int) error { return b.bytes.Fence(ctx) }

func fenceMany(ctx context.Context, b *Buffers, n int) error {
	if err := scatter(b, n); err != nil {
		return err
	}
	return b.bytes.Fence(ctx)
}

// asOrigin runs an access epoch to the other of ranks 0 and 1.
func asOrigin(ctx context.Context, b *Buffers, n, gets, puts int) error {
	if err := b.bytes.Start(ctx, b.pair); err != nil {
		return err
	}
	for j := range puts {
		at := j * n
		if err := b.bytes.Put(b.buffer[at:at+n], b.other, at); err != nil {
			return err
		}
	}
	for j := range gets {
		at := getsAt + j*n
		if err := b.bytes.Get(b.buffer[at:at+n], b.other, at); err != nil {
			return err
		}
	}
	return b.bytes.Complete(ctx)
}

// asTarget runs the exposure epoch that matches asOrigin.
func asTarget(ctx context.Context, b *Buffers) error {
	if err := b.bytes.Post(ctx, b.pair); err != nil {
		return err
	}
	return b.bytes.Wait(ctx)
}

func ping(ctx context.Context, b *Buffers, n, gets, puts int) error {
	if err := asOrigin(ctx, b, n, gets, puts); err != nil {
		return err
	}
	return asTarget(ctx, b)
}

func pong(ctx context.Context, b *Buffers, n, gets, puts int) error {
	if err := asTarget(ctx, b); err != nil {
		return err
	}
	return asOrigin(ctx, b, n, gets, puts)
}

func pingPut(ctx context.Context, b *Buffers, n int) error  { return ping(ctx, b, n, 0, 1) }
func pongPut(ctx context.Context, b *Buffers, n int) error  { return pong(ctx, b, n, 0, 1) }
func pingGet(ctx context.Context, b *Buffers, n int) error  { return ping(ctx, b, n, 1, 0) }
func pongGet(ctx context.Context, b *Buffers, n int) error  { return pong(ctx, b, n, 1, 0) }
func pingBoth(ctx context.Context, b *Buffers, n int) error { return ping(ctx, b, n, 1, 1) }
func pongBoth(ctx context.Context, b *Buffers, n int) error { return pong(ctx, b, n, 1, 1) }

// haloTurns take about 0.3 ms.
const haloTurns = 150_000

// halo is an iteration of a program whose ranks exchange edges.
func halo(ctx context.Context, b *Buffers, n int) error {
	if err := b.bytes.Post(ctx, b.pair); err != nil {
		return err
	}
	if err := asOrigin(ctx, b, n, 0, 1); err != nil {
		return err
	}
	if err := b.bytes.Wait(ctx); err != nil {
		return err
	}
	b.compute(haloTurns)
	return nil
}

func pattern16(ctx context.Context, b *Buffers, n int) error       { return asOrigin(ctx, b, n, 16, 16) }
func pattern16Target(ctx context.Context, b *Buffers, _ int) error { return asTarget(ctx, b) }
