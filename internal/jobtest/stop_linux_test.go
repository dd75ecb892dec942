package jobtest_test

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/world"
)

var resting = jobtest.Register("resting",
	func(ctx context.Context, w *world.World) error {
		if route := w.Route(1 - w.Rank()); route != "tcp" {
			return fmt.Errorf("ranks on hosts of different names reach each other by %q", route)
		}
		if w.Rank() == 1 {
			if err := errors.Join(jobtest.Hold("before"), jobtest.Stop(), jobtest.Hold("after")); err != nil {
				return err
			}
		}
		return w.Barrier(ctx)
	})

// The test chooses the commands of the ranks, releases ranks that hold, and continues a rank that has stopped itself.
func TestHoldStopContinue(t *testing.T) {
	var placed []int
	job := jobtest.StartOn(t, 2, resting, func(rank int) []string { return []string{fmt.Sprintf("RMA_HOST=host%d", rank)} },
		func(rank int, program string) *exec.Cmd {
			placed = append(placed, rank)
			return exec.Command(program)
		})
	require.Equal(t, []int{0, 1}, placed)
	job.Await(1, "before")
	job.Release(1)
	job.AwaitStop(1)
	job.Continue(1)
	job.Await(1, "after")
	job.Release(1)
	for rank, err := range job.Wait() {
		require.NoError(t, err, "rank %d", rank)
	}
}
