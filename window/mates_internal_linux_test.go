package window

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/world"
)

const (
	blockRanks = 8
	stops      = 6
)

// stoppedLast has a rank stop when all have told each other of what they have sent, before its
// mates are at the end of the Fence, which those elsewhere have come to.
var stoppedLast = jobtest.RegisterWith("stopped at the end of a fence", func() ([]world.Option, error) {
	return []world.Option{world.WithPeerTimeout(5 * time.Second)}, nil
}, func(ctx context.Context, w *world.World) error {
	win, err := Allocate[int64](ctx, w, 1)
	if err != nil {
		return err
	}
	if _, _, err := win.core.meeting.Tally(ctx, "Tally", 0, 1, func(rank int) bool { return w.Rank() == 0 && rank == stops }); err != nil {
		return err
	}
	if err := jobtest.Hold("ready"); err != nil {
		return err
	}
	if w.Rank() == stops {
		return jobtest.Stop()
	}
	err = win.core.meeting.EndTally(ctx, "EndTally")
	if failed := (*job.PeerError)(nil); w.Mapped(stops) && (!errors.As(err, &failed) || failed.Rank != stops) {
		return fmt.Errorf("error is %v, want a *job.PeerError of rank %d", err, stops)
	} else if !w.Mapped(stops) && err != nil {
		return err
	}
	return jobtest.Hold("survived")
})

func TestStoppedAtTheEndOfAFence(t *testing.T) {
	jobtest.SilentPeers.Acquire(t)
	job := jobtest.StartWith(t, blockRanks, stoppedLast, func(rank int) []string {
		return []string{"RMA_DEVICE=", fmt.Sprintf("RMA_HOST=host%d", rank/(blockRanks/2))}
	})
	for rank := range blockRanks {
		job.Await(rank, "ready")
	}
	for rank := range blockRanks {
		job.Release(rank)
	}
	for rank := range blockRanks {
		if rank != stops {
			job.Await(rank, "survived")
		}
	}
	job.Kill(stops)
	for rank := range blockRanks {
		if rank != stops {
			job.Release(rank)
		}
	}
	for rank, err := range job.Wait() {
		require.Equal(t, rank == stops, err != nil, "rank %d: %v", rank, err)
	}
}
