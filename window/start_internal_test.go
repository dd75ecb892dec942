package window

import (
	"context"
	"errors"
	"testing"

	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/world"
)

// startBeside has a goroutine have the mutex of the queue for a target, as one that waits for room
// has, while another begins an epoch to that: Start does not wait for it with the latch of the
// window, for which the others of the rank would spin.
var startBeside = jobtest.Register("a Start beside one who waits for room", func(ctx context.Context, w *world.World) error {
	win, group, err := withOther(ctx, w, 8)
	if err != nil {
		return err
	}
	if w.Rank() == 1 {
		return errors.Join(w.Barrier(ctx), win.Post(ctx, group), win.Wait(ctx), win.Close())
	}
	p, err := win.core.peer(1)
	if err != nil {
		return err
	}
	p.deferred.mu.Lock()
	err = win.Start(ctx, group)
	if p.deferred.posted() {
		err = errors.Join(err, errors.New("the target is known to have posted, which it has not"))
	}
	p.deferred.mu.Unlock()
	return errors.Join(err, w.Barrier(ctx), win.Complete(ctx), win.Close())
})

func TestStartBeside(t *testing.T) { jobtest.Apart(t, 2, startBeside) }
