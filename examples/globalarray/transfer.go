package globalarray

import (
	"context"
	"fmt"

	"github.com/onesided/rma/window"
)

// Get reads consecutive elements, from index first on, into results.
func (a *Array[T]) Get(ctx context.Context, results []T, first int) error {
	return a.row(ctx, "Get", results, first, a.win.Get)
}

// Put sets consecutive elements, from index first on, to values.
func (a *Array[T]) Put(ctx context.Context, values []T, first int) error {
	return a.row(ctx, "Put", values, first, a.win.Put)
}

// row applies do to consecutive elements, once for each contiguous run at a rank.
func (a *Array[T]) row(ctx context.Context, op string, memory []T, first int, do func(memory []T, rank, displacement int) error) error {
	if err := checkContext(ctx, op); err != nil {
		return err
	}
	if first < 0 || first > a.length-len(memory) {
		return &RangeError{Op: op, Index: first, At: -1, Count: len(memory), Len: a.length}
	}
	var err error
	for err == nil && len(memory) > 0 {
		rank, displacement := a.Where(first)
		n := min(a.Run(first), len(memory))
		err = do(memory[:n:n], rank, displacement)
		a.touch(rank)
		memory, first = memory[n:], first+n
	}
	return a.complete(ctx, op, err)
}

// Gather reads the elements of indices into results, which has the same length.
func (a *Array[T]) Gather(ctx context.Context, results []T, indices []int) error {
	return a.each(ctx, "Gather", len(results), indices, func(i, rank, displacement int) error {
		return a.win.Get(results[i:i+1:i+1], rank, displacement)
	})
}

// Scatter sets the elements of indices to values, which has the same length. The indices must all be different.
func (a *Array[T]) Scatter(ctx context.Context, values []T, indices []int) error {
	return a.each(ctx, "Scatter", len(values), indices, func(i, rank, displacement int) error {
		return a.win.Put(values[i:i+1:i+1], rank, displacement)
	})
}

// Accumulate combines the elements of indices with values, which has the same length. It is atomic for each element.
// An index may occur several times.
func (a *Array[T]) Accumulate(ctx context.Context, op window.Op, values []T, indices []int) error {
	if err := checkContext(ctx, "Accumulate"); err != nil {
		return err
	}
	if err := a.inRange("Accumulate", len(values), indices); err != nil {
		return err
	}
	var err error
	for err == nil && len(indices) > 0 {
		n := min(len(indices), maxSorted)
		err = a.accumulateByRank(op, values[:n], indices[:n])
		values, indices = values[n:], indices[n:]
	}
	return a.complete(ctx, "Accumulate", err)
}

// maxSorted bounds the number of values that are sorted by rank at a time, so that the copies stay in the cache.
const maxSorted = 4096

// A share is a rank's part of an operation.
type share[T window.Element] struct {
	values        []T
	displacements []int
	// touched is set if the rank has elements of the operation.
	touched bool
}

// accumulateByRank accumulates values, by one call for each rank.
func (a *Array[T]) accumulateByRank(op window.Op, values []T, indices []int) error {
	for i, index := range indices {
		rank, displacement := a.Where(index)
		a.touch(rank)
		s := &a.shares[rank]
		s.values, s.displacements = append(s.values, values[i]), append(s.displacements, displacement)
	}
	var err error
	for _, rank := range a.touched {
		s := &a.shares[rank]
		if err == nil && len(s.values) > 0 {
			err = a.win.AccumulateEach(op, s.values, rank, s.displacements)
		}
		s.values, s.displacements = s.values[:0], s.displacements[:0]
	}
	return err
}

// FetchAndOp combines the elements of indices with values and returns their previous values in results. All three
// have the same length. With window.NoOp, for which values is ignored and may be nil, it is a Gather that is atomic
// for each element.
func (a *Array[T]) FetchAndOp(ctx context.Context, op window.Op, values, results []T, indices []int) error {
	if len(values) != len(results) && op != window.NoOp {
		return fmt.Errorf("globalarray: FetchAndOp: %w: %s for %s; allowed are as many", ErrArgument, count(len(values), "value", "values"), count(len(results), "result", "results"))
	}
	return a.each(ctx, "FetchAndOp", len(results), indices, func(i, rank, displacement int) error {
		var value T
		if op != window.NoOp {
			value = values[i]
		}
		return a.win.FetchAndOp(op, value, &results[i], rank, displacement)
	})
}

// each checks the context and the indices, of which there must be n, and then calls do for each element.
func (a *Array[T]) each(ctx context.Context, op string, n int, indices []int, do func(i, rank, displacement int) error) error {
	if err := checkContext(ctx, op); err != nil {
		return err
	}
	if err := a.inRange(op, n, indices); err != nil {
		return err
	}
	var err error
	for i, index := range indices {
		rank, displacement := a.Where(index)
		a.touch(rank)
		if err = do(i, rank, displacement); err != nil {
			break
		}
	}
	return a.complete(ctx, op, err)
}

// inRange returns an error if an operation on n elements cannot have these indices.
func (a *Array[T]) inRange(op string, n int, indices []int) error {
	if n != len(indices) {
		return fmt.Errorf("globalarray: %s: %w: %s for %s; allowed are as many", op, ErrArgument, count(len(indices), "index", "indices"), count(n, "element", "elements"))
	}
	for at, index := range indices {
		if uint(index) >= uint(a.length) {
			return &RangeError{Op: op, Index: index, At: at, Count: len(indices), Len: a.length}
		}
	}
	return nil
}

// touch notes that a rank has elements of the operation.
func (a *Array[T]) touch(rank int) {
	if s := &a.shares[rank]; !s.touched {
		s.touched = true
		a.touched = append(a.touched, rank)
	}
}

// complete completes the operation at all ranks that have elements of it, also if issuing failed. What was issued is
// complete when it returns, unless a rank has failed or ctx has ended.
func (a *Array[T]) complete(ctx context.Context, op string, err error) error {
	for _, rank := range a.touched {
		a.shares[rank].touched = false
		flush, e := a.win.RFlush(rank)
		if err == nil {
			err = e
		}
		a.flushes = append(a.flushes, flush)
	}
	// One after the other, the flushes would take a round trip each.
	if e := window.WaitAll(ctx, a.flushes...); err == nil {
		err = e
	}
	clear(a.flushes)
	a.touched, a.flushes = a.touched[:0], a.flushes[:0]
	if err != nil {
		return fmt.Errorf("globalarray: %s: %w", op, err)
	}
	return nil
}
