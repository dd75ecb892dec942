package world

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// A rank that has done its part of a collective and closes its World stays until
// the others have done theirs.
func TestCloseWaitsForTheSlow(t *testing.T) {
	for _, n := range []int{2, 3, 9} {
		err := Run(t.Context(), n, func(ctx context.Context, w *World) error {
			if w.rank != n-1 {
				return Broadcast(ctx, w, 0, make([]int, 5))
			}
			// Rank 0 leaves when its letters have been received, which the
			// device does without this rank's taking part in the broadcast.
			for _, left := w.barrier.left(0); !left; _, left = w.barrier.left(0) {
				w.Poll()
				runtime.Gosched()
			}
			// Long enough for a Close that does not wait to be over.
			for range 1000 {
				runtime.Gosched()
			}
			return Broadcast(ctx, w, 0, make([]int, 5))
		})
		require.NoError(t, err, "%d ranks", n)
	}
}

// A collective is over on every rank although the others make no progress after their
// part of it, while connections are still being made.
func TestCollectiveWithoutProgress(t *testing.T) {
	for range 20 {
		over := make(chan struct{}, 3)
		err := Run(t.Context(), 3, func(ctx context.Context, w *World) error {
			if err := AllGather(ctx, w, make([]int, 1), make([]int, 3)); err != nil {
				return err
			}
			over <- struct{}{}
			// The World is left alone until all have got so far.
			for len(over) < 3 {
				select {
				case <-ctx.Done():
					return ctx.Err()
				default:
					runtime.Gosched()
				}
			}
			return nil
		})
		require.NoError(t, err)
	}
}

// The error says of a rank that has left that it has, not that it has failed.
func TestErrorOfLeaver(t *testing.T) {
	require.EqualError(t, &PeerError{Rank: 2, Op: "Barrier", Cause: ErrLeft}, "world: Barrier: rank 2 has left the job, or the team")
	require.EqualError(t, &PeerError{Rank: 2, Cause: errors.New("killed")}, "world: rank 2 has failed: killed")
}
