package jobtest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/world"
)

// meeting makes all ranks wait in a barrier for rank 1, which is held.
var meeting = jobtest.Register("meeting", func(ctx context.Context, w *world.World) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := w.Barrier(ctx); err != nil {
		return err
	}
	if w.Rank() == 1 {
		if err := jobtest.Hold("held"); err != nil {
			return err
		}
	} else {
		jobtest.SignalParked(ctx, "parked", "job.(*World).Barrier")
	}
	return w.Barrier(ctx)
})

// Ranks that are parked in a call are stopped there, continue, and end without an error.
func TestStopParked(t *testing.T) {
	t.Parallel()
	job := jobtest.StartWith(t, 3, meeting, func(int) []string { return []string{"RMA_DEVICE=tcp"} })
	job.Await(1, "held")
	for _, rank := range []int{0, 2} {
		job.Await(rank, "parked")
		job.Stop(rank)
	}
	job.Release(1)
	for _, rank := range []int{0, 2} {
		job.Continue(rank)
	}
	require.NoError(t, job.AwaitEnd(2))
	job.Succeeds()
}

// farApart checks that ranks of two hosts share no memory, and has a barrier before and after a Hold.
var farApart = jobtest.Register("far apart", func(ctx context.Context, w *world.World) error {
	for rank := range w.Size() {
		if w.Mapped(rank) != (rank%2 == w.Rank()%2) {
			return fmt.Errorf("rank %d is reached by %q", rank, w.Route(rank))
		}
	}
	return errors.Join(w.Barrier(ctx), jobtest.Hold("met"), w.Barrier(ctx))
})

// A host is cut off and joined again while the ranks are held.
func TestCutAndJoin(t *testing.T) {
	t.Parallel()
	job := jobtest.StartAcross(t, 2, 4, farApart, nil)
	job.AwaitAll("met")
	job.Cut(1)
	job.ReleaseAll()
	job.Join(1)
	job.Succeeds()
}

// A rank ends when its test's process has ended.
func TestOrphan(t *testing.T) {
	t.Parallel()
	job := jobtest.Start(t, 2, barrier)
	job.AwaitAll("ready")
	require.NoError(t, job.CloseWords(1))
	require.ErrorContains(t, job.AwaitEnd(1), "exit status 3")
	require.ErrorContains(t, job.AwaitEnd(0), "rank 1 has failed")
}
