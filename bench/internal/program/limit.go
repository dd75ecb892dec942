package program

import (
	"context"
	"fmt"
	"time"
)

// WithTimeout runs f with the time limit of one job, which is that of the flag.
func WithTimeout(ctx context.Context, limit time.Duration, f func(ctx context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := f(limited)
	if err != nil && ctx.Err() == nil && limited.Err() != nil {
		return fmt.Errorf("%w: %v%s: %w", ErrTimeout, limit, TimeoutFlag, err)
	}
	return err
}
