package window

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/world"
)

// Nothing is kept of a window whose end came in the midst of an epoch, after a rank had closed its part: another
// window may be at the same place.
func TestNoAccessOutlivesItsWindow(t *testing.T) {
	kept := func() (n int) {
		parts.Range(func(_, _ any) bool { n++; return true })
		return n
	}
	require.Zero(t, kept())
	var first atomic.Pointer[Window[int64]]
	require.NoError(t, world.Run(t.Context(), 2, func(ctx context.Context, w *world.World) error {
		win, err := Allocate[int64](ctx, w, 10)
		if err != nil {
			return err
		}
		if w.Rank() == 0 {
			require.NotZero(t, kept())
			first.Store(win)
			return win.Close()
		}
		if err := win.LockAll(ctx); err != nil {
			return err
		}
		// Rank 0 has closed its part, and waits for this one.
		for first.Load() == nil || !first.Load().closed.Load() {
			runtime.Gosched()
		}
		return win.Put([]int64{1}, 0, 0)
	}, world.WithDebug()))
	require.Zero(t, kept())
}
