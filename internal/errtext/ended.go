package errtext

import (
	"context"
	"errors"
	"fmt"
)

// Ended returns the error of a context that has ended. It includes the cause unless that says the same.
func Ended(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}
