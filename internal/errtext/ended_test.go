package errtext_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/errtext"
)

// causeless is a context that has ended, though the one that it is made of has not.
type causeless struct{ context.Context }

func (causeless) Err() error { return context.DeadlineExceeded }

func TestEndedSaysTheCause(t *testing.T) {
	for _, test := range []struct {
		cause error
		text  string
	}{
		{nil, "context canceled"},
		{errors.New("enough"), "context canceled: enough"},
		{fmt.Errorf("enough: %w", context.Canceled), "enough: context canceled"},
		{context.DeadlineExceeded, "context canceled: context deadline exceeded"},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(test.cause)
		err := errtext.Ended(ctx)
		require.EqualError(t, err, test.text)
		require.EqualError(t, errtext.Errorf("world: Barrier: %w", err), "world: Barrier: "+test.text)
		require.ErrorIs(t, err, context.Canceled)
		if test.cause != nil {
			require.ErrorIs(t, err, test.cause)
		}
	}
	require.Equal(t, context.DeadlineExceeded, errtext.Ended(causeless{t.Context()}))
}
