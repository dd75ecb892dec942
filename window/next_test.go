package window_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/hint"
	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/internal/simtest"
	"github.com/onesided/rma/internal/tuning"
	"github.com/onesided/rma/scheduler"
	"github.com/onesided/rma/scheduler/transfer"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// Where each rank writes to all others, what it copies first is not for the same one: all ways are
// taken all of the time.
func TestNextFirst(t *testing.T) {
	busy.Acquire(t)
	const ranks, bytes = 8, 4 << 20
	for _, way := range []struct {
		name  string
		epoch func(ctx context.Context, win *window.Window[byte], all window.Group, puts func() error) error
	}{
		{"Fence", func(ctx context.Context, win *window.Window[byte], _ window.Group, puts func() error) error {
			return errors.Join(win.Fence(ctx), puts(), win.Fence(ctx, window.NoSucceed))
		}},
		{"Complete", func(ctx context.Context, win *window.Window[byte], all window.Group, puts func() error) error {
			return errors.Join(win.Post(ctx, all), win.Start(ctx, all), puts(), win.Complete(ctx), win.Wait(ctx))
		}},
		{"UnlockAll", func(ctx context.Context, win *window.Window[byte], _ window.Group, puts func() error) error {
			return errors.Join(win.LockAll(ctx), puts(), win.UnlockAll(ctx))
		}},
	} {
		t.Run(way.name, func(t *testing.T) {
			s := simtest.New(t, "lioncub-2006", 1)
			var took time.Duration
			require.NoError(t, world.Simulate(t.Context(), s, ranks, func(ctx context.Context, w *world.World) error {
				win, err := window.Allocate[byte](ctx, w, bytes, hint.Without(scheduler.Adapt|scheduler.Early))
				if err != nil {
					return err
				}
				var others []int
				for rank := range ranks {
					if rank != w.Rank() {
						others = append(others, rank)
					}
				}
				all, err := win.Group(others...)
				if err != nil {
					return err
				}
				data := make([]byte, bytes)
				const turns = 2
				for range turns {
					if err := w.Barrier(ctx); err != nil {
						return err
					}
					begun := w.Now()
					if err := way.epoch(ctx, win, all, func() error {
						var errs []error
						for _, rank := range others {
							errs = append(errs, win.Put(data[:bytes/ranks], rank, w.Rank()*bytes/ranks))
						}
						return errors.Join(errs...)
					}); err != nil {
						return err
					}
					took = w.Now() - begun // connections are made in the first turn
				}
				return errors.Join(w.Barrier(ctx), win.Close())
			}, job.Tune(func(t *tuning.Tuning) { t.NoProtocols = transfer.All &^ transfer.Of(transfer.Copy) })))
			wire := (ranks - 1) * bytes / ranks * time.Second / 750e6
			require.Less(t, took, wire*5/4, fmt.Sprint("where the wire takes ", wire))
		})
	}
}
