package job

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// Where several ranks have failed a collective names the first, and a call that needs one
// rank that one: its cause tells of the first.
func TestFirstOfSeveralFailures(t *testing.T) {
	heard := make(chan struct{})
	err := Run(t.Context(), 3, func(ctx context.Context, w *World) error {
		if w.rank != 0 {
			<-heard
			return nil
		}
		defer close(heard)
		w.roster.fail(1, errors.New("killed"))
		w.roster.fail(2, errors.New("the connection ended"))
		rank, err := w.FirstFailure()
		require.Equal(t, 1, rank)
		require.EqualError(t, err, "world: rank 1 has failed: killed")
		require.EqualError(t, w.Barrier(ctx), "world: Barrier: rank 1 has failed: killed")
		require.EqualError(t, Broadcast(ctx, w, 2, []int{0}), "world: Broadcast: rank 1 has failed: killed")
		wait := w.NewWaiter()
		defer wait.Finish()
		require.EqualError(t, wait.Lost("Flush", 2), "world: Flush: rank 2 has failed: the connection ended, after rank 1 had failed: killed")
		return nil
	})
	var peer *PeerError
	if err != nil && !errors.As(err, &peer) {
		t.Error(err)
	}
}
