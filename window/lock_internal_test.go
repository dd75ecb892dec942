package window

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/world"
)

// A Lock may find words that no rank should have written, and that some process may still change. It then waits until its context
// ends, and says what it has found.
func TestLockDamaged(t *testing.T) {
	require.NoError(t, world.Run(t.Context(), 1, func(ctx context.Context, w *world.World) error {
		win, err := Allocate[int64](ctx, w, 1)
		if err != nil {
			return err
		}
		word := win.core.own.control.exclusive()
		word.Store(lockWordOf(99))
		enough := errors.New("enough")
		ended, end := context.WithCancelCause(ctx)
		end(enough)
		err = win.Lock(ended, Exclusive, 0)
		require.ErrorIs(t, err, enough)
		require.EqualError(t, err, "window: Lock: context canceled: enough: a damaged word has the lock of rank 0")
		// A Lock whose context has not ended takes the lock.
		return errors.Join(win.Lock(ctx, Exclusive, 0), win.Unlock(ctx, 0), win.Close())
	}))
}
