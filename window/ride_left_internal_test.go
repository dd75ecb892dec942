package window

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/world"
)

// rideLeftHeld has rank 0 complete and leave; what rides with its Complete waits for a stripe when rank 1 waits for it, or tests.
// Meanwhile it gives the stripe back.
func rideLeftHeld(wait func(ctx context.Context, win *Window[int64], give func()) error) jobtest.Body {
	return func(ctx context.Context, w *world.World) error {
		win, other, err := withOther(ctx, w, 2*perStripe)
		if err != nil {
			return err
		}
		if w.Rank() == 0 {
			return errors.Join(win.Start(ctx, other), win.Accumulate(Sum, []int64{1}, 1, perStripe), win.Complete(ctx))
		}
		stripe := win.core.own.control.stripe(win.view.offset(perStripe))
		win.core.lockStripe(stripe)
		err = untilServed(ctx, w, func() bool { return win.core.server.waiting.Load() && job.Of(w).Gone(0) })
		err = errors.Join(err, win.Post(ctx, other), wait(ctx, win, func() { win.core.giveStripe(stripe) }))
		if sum := win.Local()[perStripe]; sum != 1 {
			err = errors.Join(err, fmt.Errorf("the element is %d behind the exposure, want 1", sum))
		}
		return err
	}
}

var rideLeftHeldBodies = map[string]string{
	"Wait": jobtest.Register("a Complete of one that has left, which Wait waits for", rideLeftHeld(func(ctx context.Context, win *Window[int64], give func()) error {
		parked := make(chan error, 1)
		go func() {
			parked <- await.UntilParked(ctx, "window.(*untyped).Wait", 1)
			give()
		}()
		return errors.Join(win.Wait(ctx), <-parked)
	})),
	"Test": jobtest.Register("a Complete of one that has left, which Test looks for", rideLeftHeld(func(ctx context.Context, win *Window[int64], give func()) error {
		for looks := 0; ; looks++ {
			if looks == 100 {
				give()
			}
			if ended, err := win.Test(); ended || err != nil {
				return err
			}
		}
	})),
}

// A rank that has completed and left has told so, though what it did waits for a stripe.
func TestRideLeftHeld(t *testing.T) {
	for name, body := range rideLeftHeldBodies {
		t.Run(name, func(t *testing.T) { jobtest.Apart(t, 2, body) })
	}
}

// rideUnposted has rank 0 complete an epoch that a Get rides with, and rank 1 leave without its Post when that has come: what looks
// for the Get tells, and the Complete.
func rideUnposted(look func(ctx context.Context, r Request) error) jobtest.Body {
	return func(ctx context.Context, w *world.World) error {
		win, other, err := withOther(ctx, w, 1)
		if err != nil {
			return err
		}
		if w.Rank() == 1 {
			return untilServed(ctx, w, win.core.server.waiting.Load)
		}
		err = win.Start(ctx, other)
		r, failed := win.RGet(make([]int64, 1), 1, 0)
		if err = errors.Join(err, failed); err != nil {
			return err
		}
		if err := win.Complete(noWait); !errors.Is(err, context.Canceled) {
			return fmt.Errorf("Complete ends with %w, before the Post", err)
		}
		for _, e := range []error{look(ctx, r), win.Complete(ctx)} {
			var left *job.PeerError
			if !errors.As(e, &left) || !errors.Is(e, world.ErrLeft) || left.Rank != 1 {
				err = errors.Join(err, fmt.Errorf("error is %w, want that rank 1 has left", e))
			}
		}
		return err
	}
}

var rideUnpostedBodies = map[string]string{
	"Wait": jobtest.Register("a Get of an epoch that nobody posts for, which Wait waits for", rideUnposted(func(ctx context.Context, r Request) error {
		return r.Wait(ctx)
	})),
	"Test": jobtest.Register("a Get of an epoch that nobody posts for, which Test looks for", rideUnposted(func(_ context.Context, r Request) error {
		for {
			if done, err := r.Test(); done || err != nil {
				return err
			}
		}
	})),
}

// What rides with a Complete waits for a Post, which one that has left makes no more.
func TestRideUnposted(t *testing.T) {
	for name, body := range rideUnpostedBodies {
		t.Run(name, func(t *testing.T) { jobtest.Apart(t, 2, body) })
	}
}
