package cases

import (
	"context"

	"github.com/onesided/rma/world"
)

// The steps of the collectives, as in peers/mpi_rma.c and peers/mpi_job.c.

// Barrier is the step of barrier_lat.
func Barrier(ctx context.Context, b *Buffers, _ int) error { return b.world.Barrier(ctx) }

// AllReduce is the step of allreduce_lat.
func AllReduce(ctx context.Context, b *Buffers, n int) error {
	return world.AllReduceOp(ctx, b.world, b.addends[:n/8], b.sums[:n/8], world.Sum)
}

// Broadcast makes each rank in turn the root, at all distances. So no root can begin before it has received the
// previous broadcast.
func Broadcast(ctx context.Context, b *Buffers, n int) error {
	err := world.Broadcast(ctx, b.world, b.root, b.buffer[:n])
	size := b.world.Size()
	b.root = (b.root + 1 + b.broadcasts%(size-1)) % size
	b.broadcasts++
	return err
}
