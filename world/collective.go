package world

import (
	"context"

	"github.com/onesided/rma/aggregate/reduce"
	"github.com/onesided/rma/internal/job"
)

// Element is what an Op combines: numbers, and types defined as one. An int, a uint and a uintptr count as the
// integer of their size, which is the same on every rank. To combine structs, pass a function to [Reduce] or [AllReduce].
type Element interface {
	reduce.Element
}

// An Op is a predefined operation, which has kernels that combine many elements at once. Integers wrap around; Min and Max
// of floats are those of Go. The operations are Sum, Product, Min, Max, And, Or and Xor.
type Op = reduce.Op

// The predefined operations.
const (
	Sum     = reduce.Sum
	Product = reduce.Product
	Min     = reduce.Min
	Max     = reduce.Max
	And     = reduce.And
	Or      = reduce.Or
	Xor     = reduce.Xor
)

// Broadcast copies root's buffer into the buffer of every rank. All buffers have the same length.
func Broadcast[T any](ctx context.Context, w *World, root int, buffer []T) error {
	return job.Broadcast(ctx, w.inner(), root, buffer)
}

// Gather collects the in of all ranks, in the order of ranks, in root's out, which is Size times as long. The ins have equal lengths.
// The out of other ranks is ignored.
func Gather[T any](ctx context.Context, w *World, root int, in, out []T) error {
	return job.Gather(ctx, w.inner(), root, in, out)
}

// AllGather is Gather that returns the result in the out of every rank.
func AllGather[T any](ctx context.Context, w *World, in, out []T) error {
	return job.AllGather(ctx, w.inner(), in, out)
}

// Scatter gives each rank its part, in the order of ranks, of root's in, which is Size times as long as each out. The in of
// other ranks is ignored.
func Scatter[T any](ctx context.Context, w *World, root int, in, out []T) error {
	return job.Scatter(ctx, w.inner(), root, in, out)
}

// AllToAll sends part r of in to rank r, and puts the parts that other ranks send to this one into out, in the order of ranks. The two
// slices have the same length and do not overlap.
func AllToAll[T any](ctx context.Context, w *World, in, out []T) error {
	return job.AllToAll(ctx, w.inner(), in, out)
}

// Reduce combines the in of all ranks element by element into root's out, which is as long. The out of other ranks is
// ignored. combine must be associative and commutative. It is called for each element; [ReduceOp] takes less time.
func Reduce[T any](ctx context.Context, w *World, root int, in, out []T, combine func(a, b T) T) error {
	return job.Reduce(ctx, w.inner(), root, in, out, combine)
}

// ReduceOp is Reduce by a predefined operation. Ranks that pass different operations get an [ErrMismatch]. An operation
// that elements of T do not have is an [ErrArgument]. The slices in and out are the same or do not overlap.
func ReduceOp[T Element](ctx context.Context, w *World, root int, in, out []T, op Op) error {
	return job.ReduceOp(ctx, w.inner(), root, in, out, op)
}

// AllReduce is Reduce that returns the result in the out of every rank. All ranks get bitwise the same result, even if combine rounds.
func AllReduce[T any](ctx context.Context, w *World, in, out []T, combine func(a, b T) T) error {
	return job.AllReduce(ctx, w.inner(), in, out, combine)
}

// AllReduceOp is AllReduce by a predefined operation, as ReduceOp is Reduce.
func AllReduceOp[T Element](ctx context.Context, w *World, in, out []T, op Op) error {
	return job.AllReduceOp(ctx, w.inner(), in, out, op)
}
