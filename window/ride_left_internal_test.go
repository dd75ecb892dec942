package window

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/onesided/rma/world"
	"github.com/onesided/rma/world/worldtest"
)

// rideLeftHeld has rank 0 complete and leave; what rides with its Complete waits for a stripe when rank 1 waits for it, or tests.
func rideLeftHeld(wait func(ctx context.Context, win *Window[int64]) error) worldtest.Body {
	return func(ctx context.Context, w *world.World) error {
		win, other, err := withOther(ctx, w, 2*perStripe)
		if err != nil {
			return err
		}
		if w.Rank() == 0 {
			return errors.Join(win.Start(ctx, other), win.Accumulate(Sum, []int64{1}, 1, perStripe), win.Complete(ctx))
		}
		stripe := win.own.control.stripe(win.offset(perStripe))
		win.lockStripe(stripe)
		given := make(chan struct{})
		err = untilServed(ctx, w, func() bool { return win.server.waiting.Load() && w.Gone(0) })
		go func() {
			time.Sleep(10 * time.Millisecond)
			win.giveStripe(stripe)
			close(given)
		}()
		err = errors.Join(err, win.Post(ctx, other), wait(ctx, win))
		if sum := win.Local()[perStripe]; sum != 1 {
			err = errors.Join(err, fmt.Errorf("the element is %d behind the exposure, want 1", sum))
		}
		<-given
		return err
	}
}

var rideLeftHeldBodies = map[string]string{
	"Wait": worldtest.Register("a Complete of one that has left, which Wait waits for", rideLeftHeld(func(ctx context.Context, win *Window[int64]) error { return win.Wait(ctx) })),
	"Test": worldtest.Register("a Complete of one that has left, which Test looks for", rideLeftHeld(func(ctx context.Context, win *Window[int64]) error {
		for {
			if ended, err := win.Test(); ended || err != nil {
				return err
			}
		}
	})),
}

// A rank that has completed and left has told so, though what it did waits for a stripe.
func TestRideLeftHeld(t *testing.T) {
	for name, body := range rideLeftHeldBodies {
		t.Run(name, func(t *testing.T) { worldtest.Apart(t, 2, body) })
	}
}
