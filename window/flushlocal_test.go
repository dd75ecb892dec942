package window_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/simtest"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// Of short puts FlushLocal and FlushLocalAll do not wait for the target: the buffers are copied.
func TestFlushLocalCopies(t *testing.T) {
	s := simtest.New(t, "ndr-2024", 1)
	profile := s.Profile()
	require.NoError(t, world.Simulate(t.Context(), s, 2, func(ctx context.Context, w *world.World) error {
		for _, length := range []int{8, 300, 4096} {
			win, err := window.Allocate[byte](ctx, w, 2*length)
			if err != nil {
				return err
			}
			if err := win.LockAll(ctx); err != nil {
				return err
			}
			if w.Rank() == 0 {
				if err := win.Flush(ctx, 1); err != nil {
					return err
				}
				for i, flush := range []func() error{
					func() error { return win.FlushLocal(ctx, 1) },
					func() error { return win.FlushLocalAll(ctx) },
				} {
					origin := slices.Repeat([]byte{byte(i + 1)}, length)
					begun := w.Now()
					if err := win.Put(origin, 1, i*length); err != nil {
						return err
					}
					if err := flush(); err != nil {
						return err
					}
					require.Less(t, w.Now()-begun, profile.Wire+profile.Place, "a put of %d bytes has not been waited for in flush %d", length, i)
					clear(origin)
				}
			}
			if err := win.UnlockAll(ctx); err != nil {
				return err
			}
			if err := w.Barrier(ctx); err != nil {
				return err
			}
			if w.Rank() == 1 {
				require.Equal(t, slices.Concat(slices.Repeat([]byte{1}, length), slices.Repeat([]byte{2}, length)), win.Local(), "%d bytes", length)
			}
			if err := win.Close(); err != nil {
				return err
			}
		}
		return nil
	}))
}

// Ranks exchange edges by notified puts and FlushLocalAll in little more of the virtual time than by groups, however long the
// edges are.
func TestNotifiedEdges(t *testing.T) {
	const iterations = 50
	for _, length := range []int{8, 128, 1 << 10, 8 << 10, 32 << 10, 128 << 10} {
		t.Run(fmt.Sprint(length), func(t *testing.T) {
			var took [2]time.Duration
			require.NoError(t, world.Simulate(t.Context(), simtest.New(t, "ndr-2024", 1), 4, func(ctx context.Context, w *world.World) error {
				win, err := window.Allocate[byte](ctx, w, 4*length, window.Notifications(2))
				if err != nil {
					return err
				}
				sides := []int{(w.Rank() + w.Size() - 1) % w.Size(), (w.Rank() + 1) % w.Size()}
				group, err := win.Group(sides...)
				if err != nil {
					return err
				}
				edges := [2][]byte{make([]byte, length), make([]byte, length)}
				byGroups := func(at int) error {
					if err := win.Post(ctx, group); err != nil {
						return err
					}
					if err := win.Start(ctx, group); err != nil {
						return err
					}
					for side, rank := range sides {
						if err := win.Put(edges[side], rank, (at+side)*length); err != nil {
							return err
						}
					}
					if err := win.Complete(ctx); err != nil {
						return err
					}
					return win.Wait(ctx)
				}
				byNotifications := func(at int) error {
					for side, rank := range sides {
						if err := win.PutNotify(edges[side], rank, (at+side)*length, side); err != nil {
							return err
						}
					}
					if err := win.FlushLocalAll(ctx); err != nil {
						return err
					}
					for side := range sides {
						if err := win.WaitNotify(ctx, side, 1); err != nil {
							return err
						}
					}
					return nil
				}
				for way, exchange := range []func(at int) error{byGroups, byNotifications} {
					if way == 1 {
						if err := win.LockAll(ctx); err != nil {
							return err
						}
					}
					// The first makes the queues, and the card know the buffers.
					for range 2 {
						if err := w.Barrier(ctx); err != nil {
							return err
						}
						begun := w.Now()
						for i := range iterations {
							// A neighbour may be ahead by one exchange.
							if err := exchange(i % 2 * 2); err != nil {
								return err
							}
						}
						if w.Rank() == 0 {
							took[way] = w.Now() - begun
						}
					}
				}
				if err := win.UnlockAll(ctx); err != nil {
					return err
				}
				return win.Close()
			}))
			require.LessOrEqual(t, float64(took[1])/float64(took[0]), 1.1, "%v by notifications, %v by groups", took[1]/iterations, took[0]/iterations)
		})
	}
}
