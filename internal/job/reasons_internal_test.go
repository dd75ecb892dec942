package job

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/errtext"
)

// endedBy is the error of a context that was cancelled for a cause.
func endedBy(t *testing.T, cause error) error {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	return errtext.Errorf("world: Barrier: %w", errtext.Ended(ctx))
}

// Failed and Is search for the reason of an error. The cause for which a program has cancelled a context is none, nor is the
// error of another rank.
func TestReasons(t *testing.T) {
	plain := errors.New("failed")
	lost := &PeerError{Rank: 1, Cause: plain}
	canceled := &PeerError{Rank: 2, Cause: fmt.Errorf("its body: %w", context.Canceled)}
	for _, test := range []struct {
		name   string
		err    error
		failed *PeerError
		is     []error
	}{
		{"none", nil, nil, nil},
		{"another", plain, nil, []error{plain}},
		{"a failure", fmt.Errorf("a call: %w", lost), lost, nil},
		{"a failure by a context", canceled, canceled, nil},
		{"of a context", endedBy(t, nil), nil, []error{context.Canceled}},
		{"of a context for a failure", endedBy(t, lost), nil, []error{context.Canceled}},
		{"of a context for a failure by a context", endedBy(t, canceled), nil, []error{context.Canceled}},
		{"of a context for a closed World", endedBy(t, ErrClosed), nil, []error{context.Canceled}},
		{"joined", errors.Join(endedBy(t, canceled), fmt.Errorf("a call: %w", lost)), lost, []error{context.Canceled}},
		{"with a method Is", errors.Join(plain, isClosed{}), nil, []error{plain, ErrClosed}},
	} {
		t.Run(test.name, func(t *testing.T) {
			require.Equal(t, test.failed, Failed(test.err))
			for _, target := range []error{plain, context.Canceled, ErrClosed} {
				want := false
				for _, is := range test.is {
					want = want || is == target
				}
				require.Equal(t, want, Is(test.err, target), "%v", target)
			}
		})
	}
	// The program finds the cause.
	var failed *PeerError
	require.ErrorAs(t, endedBy(t, canceled), &failed)
	require.Equal(t, canceled, failed)
}

type isClosed struct{}

func (isClosed) Error() string        { return "over" }
func (isClosed) Is(target error) bool { return target == ErrClosed }

// A call that its context has cut short may be made again, whatever the cause of the context.
func TestCutBy(t *testing.T) {
	for _, cause := range []error{nil, errors.New("enough"), &PeerError{Rank: 1, Cause: errors.New("failed")}, &PeerError{Rank: 1, Cause: context.Canceled}, ErrClosed} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		require.True(t, cutBy(ctx, fmt.Errorf("a call: %w", errtext.Ended(ctx))), "%v", cause)
		require.False(t, cutBy(ctx, &PeerError{Rank: 1, Cause: context.Canceled}))
		require.False(t, cutBy(t.Context(), errtext.Ended(ctx)))
	}
}
