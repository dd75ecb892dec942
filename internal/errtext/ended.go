package errtext

import (
	"context"
	"errors"
)

// An EndedError is the error of a context that has ended with a cause of its own. It wraps both.
//
// The cause belongs to the program, and may be any error, such as the failure of a rank. So code that looks for the reason
// why a call has failed must not look into the cause: see package job, Failed and Is.
type EndedError struct{ err, cause error }

// Ended returns the error of a context that has ended. It includes the cause unless that says the same.
func Ended(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if cause == nil || cause == err {
		// A context that is not of package context may have no cause.
		return err
	}
	return &EndedError{err, cause}
}

func (e *EndedError) Error() string {
	if errors.Is(e.cause, e.err) {
		return e.cause.Error()
	}
	return e.err.Error() + colon + e.cause.Error()
}

// Unwrap returns the error of the context and the cause.
func (e *EndedError) Unwrap() []error { return []error{e.err, e.cause} }

// ContextErr returns the error of the context.
func (e *EndedError) ContextErr() error { return e.err }
