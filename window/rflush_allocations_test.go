//go:build !race

package window_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
	"github.com/onesided/rma/world/worldtest"
)

// A flush with a request allocates nothing, as long as it can begin at once.
func TestRFlushAllocatesNothing(t *testing.T) {
	require.NoError(t, world.Run(t.Context(), 2, func(ctx context.Context, w *world.World) error {
		win, err := window.Allocate[int64](ctx, w, 1)
		if err = errors.Join(err, win.LockAll(ctx)); err == nil && w.Rank() == 0 {
			origin := []int64{1}
			round := func() {
				failed := win.Put(origin, 1, 0)
				r, e := win.RFlush(1)
				err = errors.Join(err, failed, e, r.Wait(ctx))
			}
			// Queues grow to what they need.
			for range 300 {
				round()
			}
			require.Zero(t, testing.AllocsPerRun(2000, round))
		}
		return errors.Join(err, win.UnlockAll(ctx), win.Close())
	}, worldtest.OptionsApart()...))
}
