package job

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
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

// After a failure ranks that have left sleep until all others have left, too. The last one wakes them, also if it leaves a team of
// which it has only its own part.
func TestLastToLeaveWakesAll(t *testing.T) {
	// Rank 2 is none of those that wait for the last one in meetings: see awaiting.
	const n, failed, last = 6, 3, 5
	for _, partial := range []bool{false, true} {
		t.Run(fmt.Sprintf("partial %v", partial), func(t *testing.T) {
			s, err := newSettings([]Option{onCores(n), sleeping(forever)})
			require.NoError(t, err)
			job, err := localWorlds(t.Context(), n, s)
			require.NoError(t, err)
			worlds := job
			if partial {
				worlds = split(t, job)
				worlds[last].partial.Store(true)
			}
			job[0].roster.fail(failed, errors.New("this test says so"))
			left := make(chan error, n)
			leave := func(rank int) {
				go func() { left <- worlds[rank].Close() }()
				await.True(t, "a rank to leave", worlds[rank].left.Load)
			}
			others := []int{0, 1, 2, 4}
			for _, rank := range others {
				leave(rank)
			}
			await.Parked(t, "job.(*World).outlast", len(others))
			// A sleep after the first lasts until they are woken.
			for _, rank := range others {
				before, _ := worlds[rank].engine.Sleeps()
				await.True(t, "the first sleep to end", func() bool {
					sleeps, slept := worlds[rank].engine.Sleeps()
					return sleeps > before || slept > 0
				})
			}
			leave(last)
			for range len(others) + 1 {
				require.NoError(t, await.Receive(t, "all ranks to have left", left))
			}
			for _, w := range job {
				if partial || w.rank == failed {
					require.NoError(t, w.depart())
				}
			}
		})
	}
}

// split makes a team of all ranks.
func split(t *testing.T, job []*World) []*World {
	t.Helper()
	teams, errs := make([]*World, len(job)), make([]error, len(job))
	var made sync.WaitGroup
	for rank, w := range job {
		made.Go(func() { teams[rank], errs[rank] = w.Split(t.Context(), 0, rank) })
	}
	made.Wait()
	require.NoError(t, errors.Join(errs...))
	return teams
}

// The error says of a rank that has left that it has, not that it has failed.
func TestErrorOfLeaver(t *testing.T) {
	require.EqualError(t, &PeerError{Rank: 2, Op: "Barrier", Cause: ErrLeft}, "world: Barrier: rank 2 has left the job, or the team")
	require.EqualError(t, &PeerError{Rank: 2, Cause: errors.New("killed")}, "world: rank 2 has failed: killed")
}
