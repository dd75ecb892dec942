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

// Gather copies the slice in of every rank to root's slice out, ordered by rank. All slices in have the same length, and root's
// out is Size times as long. Other ranks ignore out. in and out must not overlap.
func Gather[T any](ctx context.Context, w *World, root int, in, out []T) error {
	return job.Gather(ctx, w.inner(), root, in, out)
}

// AllGather is [Gather] to the slice out of every rank. in and out must not overlap.
func AllGather[T any](ctx context.Context, w *World, in, out []T) error {
	return job.AllGather(ctx, w.inner(), in, out)
}

// Scatter copies part r of root's slice in to the slice out of rank r. All slices out have the same length, and root's in is Size
// times as long. Other ranks ignore in. in and out must not overlap.
func Scatter[T any](ctx context.Context, w *World, root int, in, out []T) error {
	return job.Scatter(ctx, w.inner(), root, in, out)
}

// AllToAll sends part r of in to rank r. Part r of out is what rank r has sent to this rank. The two slices have the same length,
// a multiple of Size, and must not overlap.
func AllToAll[T any](ctx context.Context, w *World, in, out []T) error {
	return job.AllToAll(ctx, w.inner(), in, out)
}

// Reduce combines the slices in of all ranks element by element into root's slice out, which is as long. Other ranks ignore out.
// in and out are the same slice or do not overlap.
//
// combine must be commutative, and associative except for rounding: the order of combination is not specified, and may differ
// between numbers of ranks and devices. It is called for each element; [ReduceOp] takes less time.
func Reduce[T any](ctx context.Context, w *World, root int, in, out []T, combine func(a, b T) T) error {
	return job.Reduce(ctx, w.inner(), root, in, out, combine)
}

// ReduceOp is [Reduce] by a predefined operation. Ranks that pass different operations get an [ErrMismatch]. An operation
// that elements of T do not have is an [ErrArgument].
func ReduceOp[T Element](ctx context.Context, w *World, root int, in, out []T, op Op) error {
	return job.ReduceOp(ctx, w.inner(), root, in, out, op)
}

// AllReduce is [Reduce] to the slice out of every rank. All ranks get bitwise the same result, even if combine rounds. in and out
// are as in Reduce.
func AllReduce[T any](ctx context.Context, w *World, in, out []T, combine func(a, b T) T) error {
	return job.AllReduce(ctx, w.inner(), in, out, combine)
}

// AllReduceOp is [AllReduce] by a predefined operation, as [ReduceOp] is Reduce. in and out are as in Reduce.
func AllReduceOp[T Element](ctx context.Context, w *World, in, out []T, op Op) error {
	return job.AllReduceOp(ctx, w.inner(), in, out, op)
}
