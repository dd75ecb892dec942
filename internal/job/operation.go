package job

import (
	"context"
	"fmt"
	"slices"

	"github.com/onesided/rma/aggregate/reduce"
	"github.com/onesided/rma/internal/errtext"
)

// Element is what an Op combines: numbers, and types that are defined as one. An int, a uint or a uintptr is as an
// integer of its size, which is the same on every rank. Of a struct, combine the fields by the function of [Reduce] or [AllReduce].
type Element interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr |
		~float32 | ~float64 | ~complex64 | ~complex128
}

// Op is an operation that is known here, for which there are instructions that combine many elements at
// once. Integers wrap; Min and Max of floats are Go's.
type Op = reduce.Op

// The operations.
const (
	Sum     = reduce.Sum
	Product = reduce.Product
	// Min and Max are not of complex elements.
	Min = reduce.Min
	Max = reduce.Max
	// And, Or and Xor are bit by bit, of integers.
	And = reduce.And
	Or  = reduce.Or
	Xor = reduce.Xor
)

// AllReduceOp is like AllReduce, by a predefined operation.
func AllReduceOp[T Element](ctx context.Context, w *World, in, out []T, op Op) error {
	by, err := operationOf[T](w, "AllReduceOp", op)
	if err != nil {
		return err
	}
	return allReduceBy(ctx, w, "AllReduceOp", in, out, by)
}

// ReduceOp is like Reduce, by a predefined operation.
func ReduceOp[T Element](ctx context.Context, w *World, root int, in, out []T, op Op) error {
	by, err := operationOf[T](w, "ReduceOp", op)
	if err != nil {
		return err
	}
	return reduceBy(ctx, w, "ReduceOp", root, in, out, by)
}

// An operation is how elements of two ranks are combined: by a function for each, or by a kernel for many of
// an Op, which has a number then.
type operation[T any] struct {
	combine func(a, b T) T
	kernel  reduce.Func
	number  uint32
}

func operationOf[T Element](w *World, call string, op Op) (by operation[T], err error) {
	if err := made(w, call); err != nil {
		return by, err
	}
	kind := reduce.KindOf[T]()
	if by.kernel, err = reduce.Lookup(kind, op); err != nil || op > Xor {
		class := ErrArgument
		if err != nil {
			class = fmt.Errorf("%w: %w", ErrArgument, reduce.ErrUnsupported)
		}
		combining := slices.DeleteFunc(reduce.Operations(kind), func(op Op) bool { return op > Xor })
		return by, fmt.Errorf("world: %s: %w: %v of %v; allowed are %s", call, class, op, kind, errtext.List(combining))
	}
	by.number = uint32(op) + 1
	return by, nil
}

// called is the call of a signature, with the operation.
func (o operation[T]) called(call uint32) uint32 { return o.number<<opShift | call }

// add adds others to elements, the first operand those that are of the lower rank. What is in other afterwards
// is nobody's.
func (o operation[T]) add(into, other []T, lower bool) {
	switch {
	case o.kernel == nil && lower:
		for i := range into {
			into[i] = o.combine(into[i], other[i])
		}
	case o.kernel == nil:
		for i := range into {
			into[i] = o.combine(other[i], into[i])
		}
	case lower:
		combine(o.kernel, into, other)
	default:
		combine(o.kernel, other, into)
		copy(into, other)
	}
}

// An addition is what becomes of the data of a parcel that is combined with what this rank has as it comes,
// instead of stored. Its zero value is none.
type addition struct {
	kernel reduce.Func
	// size of an element, in bytes.
	size int
	// mine is what this rank has, nil if that is where the sum is to be.
	mine []byte
	// lower tells that mine is the first operand, which counts where it is not where the sum is to be.
	lower bool
}

// addedAtOnce is how many bytes are copied before they are added to, in a core's first cache.
const addedAtOnce = 8 << 10

// add stores the sums of a piece of the data, of whole elements, that begins at an offset.
func (a *addition) add(into, piece []byte, at int) {
	if a.mine == nil {
		combineBytes(a.kernel, into, piece, a.size)
		return
	}
	for len(piece) > 0 {
		n := min(len(piece), addedAtOnce)
		first, second := piece[:n], a.mine[at:][:n]
		if a.lower {
			first, second = second, first
		}
		copy(into, first)
		combineBytes(a.kernel, into[:n], second, a.size)
		into, piece, at = into[n:], piece[n:], at+n
	}
}
