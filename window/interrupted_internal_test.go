package window

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/verbs"
)

// A call is interrupted by its own context, and by a shortage of its own process, also where that is one of several errors. What
// ended another rank ends the call for good, though its text is the same.
func TestInterrupted(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	cut, failed := fmt.Errorf("waiting for rank 2: %w", context.Canceled), errors.New("failed")
	lost := func(cause error) error { return &job.PeerError{Rank: 1, Cause: cause} }
	for _, test := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{failed, false},
		{cut, true},
		{verbs.ErrShortage, true},
		{lost(cut), false},
		{lost(verbs.ErrShortage), false},
		{errors.Join(lost(failed), cut), true},
		{errors.Join(lost(cut), cut), true},
		{errors.Join(errors.Join(lost(cut), failed), errors.Join(lost(cut), verbs.ErrShortage)), true},
		{errors.Join(lost(cut), failed), false},
	} {
		require.Equal(t, test.want, interrupted(ended, test.err), "%v", test.err)
	}
	require.False(t, interrupted(t.Context(), cut))
}
