package window

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/world"
)

// TestSlotSetBack has a peer set a notification slot back, below what was taken: that
// is no notification.
func TestSlotSetBack(t *testing.T) {
	require.NoError(t, world.Run(t.Context(), 1, func(ctx context.Context, w *world.World) error {
		win, err := Allocate[int64](ctx, w, 1)
		require.NoError(t, err)
		slot := win.core.own.control.slot(2)
		slot.Store(5)
		require.NoError(t, win.WaitNotify(ctx, 2, 5))
		slot.Store(3)
		told, err := win.TestNotify(2, 1)
		require.NoError(t, err)
		require.False(t, told)
		slot.Store(6)
		require.NoError(t, win.WaitNotify(ctx, 2, 1))
		return win.Close()
	}))
}
