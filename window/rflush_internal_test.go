package window

import (
	"context"
	"errors"
	"testing"

	"github.com/onesided/rma/world"
	"github.com/onesided/rma/world/worldtest"
)

// A Complete that rides, because its target has not posted, is granted nothing: a flush of nothing behind it asks.
var flushBehindComplete = worldtest.Register("a flush behind a Complete that rode", func(ctx context.Context, w *world.World) error {
	win, err := Allocate[int64](ctx, w, 1)
	if err != nil {
		return err
	}
	group, err := win.Group(1 - w.Rank())
	err = errors.Join(err, w.Barrier(ctx))
	if w.Rank() == 0 {
		err = errors.Join(err, win.Start(ctx, group), win.Put([]int64{1}, 1, 0), win.Complete(ctx), w.Barrier(ctx), w.Barrier(ctx), win.Lock(ctx, Shared, 1))
		r, failed := win.RFlush(1)
		if r.late == nil && r.mark == (world.Mark{}) {
			failed = errors.Join(failed, errors.New("the flush waits for nothing"))
		}
		err = errors.Join(err, failed, r.Wait(ctx), win.Unlock(ctx, 1))
	} else {
		err = errors.Join(err, w.Barrier(ctx), win.Post(ctx, group), w.Barrier(ctx), win.Wait(ctx))
	}
	return errors.Join(err, w.Barrier(ctx), win.Close())
})

func TestRFlushBehindComplete(t *testing.T) { worldtest.Apart(t, 2, flushBehindComplete) }
