package shadow

import (
	"errors"
	"fmt"

	"github.com/onesided/rma/aggregate/reduce"
)

// ErrRange marks operations beyond a rank's memory, or of a rank that there is not.
var ErrRange = errors.New("not within the memory of a rank")

// A DifferenceError is the first difference between a copy and what was found.
type DifferenceError struct {
	// Rank and Displacement are where the difference is.
	Rank, Displacement int
	// Read is whether the rank's memory was compared, or what a Get has read of it.
	Read bool
	// Got and Want are the element that was found, and that of the copy.
	Got, Want any
	// Differing is how many elements differ of Compared ones.
	Differing, Compared int
}

func (e *DifferenceError) Error() string {
	what := "has"
	if e.Read {
		what = "was read as"
	}
	return fmt.Sprintf("shadow: rank %d, displacement %d: the window %s %v, want %v; %d of %d elements differ", e.Rank, e.Displacement, what, e.Got, e.Want, e.Differing, e.Compared)
}

// A Memory is a plain copy of every rank's window memory. It is for one goroutine.
type Memory[T reduce.Element] struct{ ranks [][]T }

// NewMemory makes the copy of memory that is zero and has that number of elements in each rank.
func NewMemory[T reduce.Element](lengths ...int) *Memory[T] {
	m := &Memory[T]{}
	for _, n := range lengths {
		m.ranks = append(m.ranks, make([]T, n))
	}
	return m
}

// Rank is the memory of a rank: the copy itself, which a test may change.
func (m *Memory[T]) Rank(rank int) []T { return m.ranks[rank] }

// part is n elements of a rank from a displacement on.
func (m *Memory[T]) part(n, rank, displacement int) ([]T, error) {
	if rank < 0 || rank >= len(m.ranks) || displacement < 0 || displacement > len(m.ranks[rank])-n {
		return nil, fmt.Errorf("shadow: %d elements at displacement %d of rank %d: %w", n, displacement, rank, ErrRange)
	}
	return m.ranks[rank][displacement : displacement+n], nil
}

// Put applies a Put.
func (m *Memory[T]) Put(origin []T, target, displacement int) error {
	to, err := m.part(len(origin), target, displacement)
	copy(to, origin)
	return err
}

// Get makes result what a Get reads.
func (m *Memory[T]) Get(result []T, target, displacement int) error {
	from, err := m.part(len(result), target, displacement)
	copy(result, from)
	return err
}

// Accumulate applies an Accumulate. An error wraps reduce.ErrUnsupported where the elements do not have the operation.
func (m *Memory[T]) Accumulate(op reduce.Op, origin []T, target, displacement int) error {
	if err := reduce.Supported(reduce.KindOf[T](), op); err != nil {
		return err
	}
	to, err := m.part(len(origin), target, displacement)
	if err != nil {
		return err
	}
	for i := range origin {
		to[i] = combine(op, to[i], origin[i])
	}
	return nil
}

// Compare returns a *DifferenceError unless got is the memory of a rank.
func (m *Memory[T]) Compare(rank int, got []T) error {
	if len(got) != len(m.ranks[rank]) {
		return fmt.Errorf("shadow: rank %d has %d elements, want %d", rank, len(got), len(m.ranks[rank]))
	}
	return difference(rank, 0, false, got, m.ranks[rank])
}

// difference compares elements of a rank from a displacement on.
func difference[T reduce.Element](rank, displacement int, read bool, got, want []T) error {
	var first *DifferenceError
	for i := range want {
		if same(got[i], want[i]) {
			continue
		}
		if first == nil {
			first = &DifferenceError{Rank: rank, Displacement: displacement + i, Read: read, Got: got[i], Want: want[i], Compared: len(want)}
		}
		first.Differing++
	}
	if first == nil {
		return nil
	}
	return first
}

// same reports whether two elements are equal. One that is not a number is equal to another that is not.
func same[T reduce.Element](a, b T) bool { return a == b || a != a && b != b }
