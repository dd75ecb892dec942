package globalarray

import (
	"context"
	"errors"
	"fmt"
)

var (
	// ErrArgument is wrapped by errors about arguments.
	ErrArgument = errors.New("invalid argument")
	// ErrMismatch reports that ranks passed different lengths or distributions to New.
	ErrMismatch = errors.New("ranks disagree")
)

// A RangeError reports an index out of range. It matches ErrArgument.
type RangeError struct {
	// Op is the name of the method. Index is the wrong index, at position At of the indices that were passed. If At
	// is -1, Index is the first of Count consecutive elements.
	Op               string
	Index, At, Count int
	// Len is the number of elements of the array.
	Len int
}

func (e *RangeError) Error() string {
	if e.At < 0 {
		return fmt.Sprintf("globalarray: %s: %s from index %d on; the array has %d", e.Op, count(e.Count, "element", "elements"), e.Index, e.Len)
	}
	return fmt.Sprintf("globalarray: %s: index %d, number %d of %d; the array has elements 0 to %d", e.Op, e.Index, e.At, e.Count, e.Len-1)
}

// Is reports whether target is ErrArgument.
func (e *RangeError) Is(target error) bool { return target == ErrArgument }

// count returns n and the noun in the right number.
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// checkContext returns an error if a call that may wait has no context.
func checkContext(ctx context.Context, op string) error {
	if ctx == nil {
		return fmt.Errorf("globalarray: %s: %w: nil context", op, ErrArgument)
	}
	return nil
}
