package shadow

import (
	"errors"
	"fmt"

	"github.com/onesided/rma/aggregate/reduce"
)

// ErrRange reports an operation outside a rank's memory, or on a rank that does not exist.
var ErrRange = errors.New("not within the memory of a rank")

// A DifferenceError is the first difference between a copy and the memory or a result.
type DifferenceError struct {
	// Rank and Displacement are the place of the difference.
	Rank, Displacement int
	// Read is set if the result of a Get was compared, and not the rank's memory.
	Read bool
	// Got is the element that was found, Want the element of the copy.
	Got, Want any
	// Differing of Compared elements differ.
	Differing, Compared int
}

func (e *DifferenceError) Error() string {
	what := "has"
	if e.Read {
		what = "was read as"
	}
	return fmt.Sprintf("shadow: rank %d, displacement %d: the window %s %v, want %v; %d of %d elements differ", e.Rank, e.Displacement, what, e.Got, e.Want, e.Differing, e.Compared)
}

// A Memory is a plain copy of every rank's window memory. It may be used by one goroutine at a time.
type Memory[T reduce.Element] struct{ ranks [][]T }

// NewMemory returns the copy of memory that is zero. Rank i has lengths[i] elements.
func NewMemory[T reduce.Element](lengths ...int) *Memory[T] {
	m := &Memory[T]{}
	for _, n := range lengths {
		m.ranks = append(m.ranks, make([]T, n))
	}
	return m
}

// Rank returns the memory of a rank: the copy itself, which a test may change.
func (m *Memory[T]) Rank(rank int) []T { return m.ranks[rank] }

// part returns n elements of a rank from a displacement on.
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

// Get sets result to what a Get reads.
func (m *Memory[T]) Get(result []T, target, displacement int) error {
	from, err := m.part(len(result), target, displacement)
	copy(result, from)
	return err
}

// Accumulate applies an Accumulate. The error wraps reduce.ErrUnsupported if the elements do not have the operation.
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

// Compare returns a *DifferenceError unless got equals the memory of a rank.
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

// same reports whether two elements are equal. Two NaNs are equal.
func same[T reduce.Element](a, b T) bool { return a == b || a != a && b != b }
