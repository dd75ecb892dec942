package window

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/world"
)

// A rank that was cut short in Close, before or after all ranks had met, and closes the window again, writes nothing to the
// control block of one that has freed it.
func TestCloseAgain(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	var cut, freed atomic.Bool
	require.NoError(t, world.Run(t.Context(), 2, func(ctx context.Context, w *world.World) error {
		win, err := Allocate[int64](ctx, w, 1)
		if err != nil {
			return err
		}
		c := win.core
		if w.Rank() == 0 {
			if err := win.CloseContext(ended); !errors.Is(err, context.Canceled) {
				return fmt.Errorf("error is %v, want %w", err, context.Canceled)
			}
			cut.Store(true)
			err = await.Until(ctx, "rank 1 to have closed the window", freed.Load)
			// As much as a Close does that its context ends when all have met.
			err = errors.Join(err, c.meetLast(ctx, c.epochs.LastFence()+1))
			return errors.Join(err, win.Close(), w.Barrier(ctx))
		}
		// Of the first round of the meeting.
		flag := c.own.control.word(meetingAt)
		err = errors.Join(await.Until(ctx, "rank 0 to be cut short", cut.Load), win.Close())
		flag.Store(0)
		freed.Store(true)
		err = errors.Join(err, w.Barrier(ctx))
		if number := flag.Load(); number != 0 {
			err = errors.Join(err, fmt.Errorf("rank 0 has written %d to memory that was free", number))
		}
		return err
	}))
}
