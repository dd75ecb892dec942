package globalarray

import (
	"errors"
	"fmt"
)

var (
	// ErrArgument is wrapped by errors about what was passed.
	ErrArgument = errors.New("invalid argument")
	// ErrMismatch: ranks passed different lengths or distributions to New.
	ErrMismatch = errors.New("ranks disagree")
)

// A RangeError is an index that the array does not have. It is an ErrArgument.
type RangeError struct {
	// Op is the method, Index the one that is wrong, at At among the indices that were passed; or the first
	// of Count elements in a row, where At is -1.
	Op               string
	Index, At, Count int
	// Len is of the array.
	Len int
}

func (e *RangeError) Error() string {
	if e.At < 0 {
		return fmt.Sprintf("globalarray: %s: %d elements from index %d on; the array has %d", e.Op, e.Count, e.Index, e.Len)
	}
	return fmt.Sprintf("globalarray: %s: index %d, number %d of %d; the array has elements 0 to %d", e.Op, e.Index, e.At, e.Count, e.Len-1)
}

// Is makes it an ErrArgument.
func (e *RangeError) Is(target error) bool { return target == ErrArgument }
