package window_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/hint"
	"github.com/onesided/rma/internal/simtest"
	"github.com/onesided/rma/scheduler"
	"github.com/onesided/rma/verbs/sim"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// What goes direct is done when it comes, what is in a packet when progress comes to it: the
// former must not overtake the latter of the epoch before.
func TestDirectOvertakesNoPacket(t *testing.T) {
	for _, profile := range sim.Profiles() {
		t.Run(profile, func(t *testing.T) {
			for seed := range uint64(8) {
				require.NoError(t, world.Simulate(t.Context(), simtest.New(t, profile, seed), 2, getBehindAccumulate))
			}
		})
	}
}

// overtakingTurns are each with more time between the ranks' Fences.
const overtakingTurns = 40

// getBehindAccumulate has rank 0, for which rank 1 waits in the Fence, read at once what it has
// added before.
func getBehindAccumulate(ctx context.Context, w *world.World) error {
	win, err := window.Allocate[int64](ctx, w, 64, hint.Without(scheduler.Defer))
	if err != nil {
		return err
	}
	if err := win.Fence(ctx); err != nil {
		return err
	}
	one, got := []int64{1}, []int64{0}
	for turn := range overtakingTurns {
		if w.Rank() == 0 {
			w.Compute(time.Duration(turn) * 250 * time.Nanosecond)
			if err := win.Accumulate(window.Sum, one, 1, 8); err != nil {
				return err
			}
		}
		if err := win.Fence(ctx); err != nil {
			return err
		}
		if w.Rank() == 0 {
			if err := win.Get(got, 1, 8); err != nil {
				return err
			}
		}
		if err := win.Fence(ctx); err != nil {
			return err
		}
		if w.Rank() == 0 && got[0] != int64(turn+1) {
			return fmt.Errorf("behind %d accumulates there is %d", turn+1, got[0])
		}
	}
	if err := win.Fence(ctx, window.NoSucceed); err != nil {
		return err
	}
	return win.Close()
}
