package window

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/world"
)

// perStripe is how many elements a stripe of a small window has.
const perStripe = 1 << minStripeShift / 8

// The ranks of TestStripeHeldForLong, on two hosts: the keeper maps the owner's part and
// has its second stripe of three; the origin sends to all of them, and so does another.
const (
	owner = iota
	origin
	keeper
	other
)

// passes is how often the other adds to an element of the stripes that are free.
const passes = 20

var stripeHeld = jobtest.Register("a stripe held for long", func(ctx context.Context, w *world.World) error {
	win, err := Allocate[int64](ctx, w, 3*perStripe)
	if err != nil {
		return err
	}
	p, err := win.core.peer(owner)
	if err != nil {
		return err
	}
	stripe := func() *atomic.Uint32 { return p.control.stripe(win.view.offset(perStripe)) }
	if w.Rank() == keeper {
		win.core.lockStripe(stripe())
	}
	if err := errors.Join(win.LockAll(ctx), w.Barrier(ctx)); err != nil {
		return err
	}
	switch w.Rank() {
	case origin:
		err = sendToHeld(ctx, win)
	case keeper:
		err = win.WaitNotify(ctx, 0, 1)
		win.core.giveStripe(stripe())
	case other:
		err = errors.Join(passHeld(ctx, win), win.PutNotify([]int64{1}, keeper, 0, 0))
	}
	err = errors.Join(err, win.UnlockAll(ctx), w.Barrier(ctx))
	if w.Rank() == owner {
		want := slices.Repeat([]int64{2}, 3*perStripe)
		want[0], want[perStripe], want[2*perStripe] = 2+passes, 100, 2+passes
		if !slices.Equal(win.Local(), want) {
			err = errors.Join(err, fmt.Errorf("elements are %v, want %v", win.Local(), want))
		}
	}
	return errors.Join(err, win.Close())
})

// sendToHeld sends an operation that needs the held stripe, and messages after it.
func sendToHeld(ctx context.Context, win *Window[int64]) error {
	ones, old, swapped := slices.Repeat([]int64{1}, 3*perStripe), make([]int64, 3*perStripe), int64(0)
	err := errors.Join(
		win.GetAccumulate(Sum, ones, old, owner, 0),
		win.Accumulate(Sum, ones, owner, 0),
		win.CompareAndSwap(2, 100, &swapped, owner, perStripe),
		win.Flush(ctx, owner),
	)
	want := make([]int64, 3*perStripe)
	want[2*perStripe] = passes
	if err == nil && !slices.Equal(old, want) {
		err = fmt.Errorf("elements were %v, want %v", old, want)
	}
	if err == nil && swapped != 2 {
		err = fmt.Errorf("element was %d, want 2", swapped)
	}
	return err
}

// passHeld adds to the stripes that are free, when the origin's message has come to the
// one that is not.
func passHeld(ctx context.Context, win *Window[int64]) error {
	fetch := func(op Op, element int) (int64, error) {
		var old int64
		if err := errors.Join(win.FetchAndOp(op, 1, &old, owner, element), win.Flush(ctx, owner)); err != nil {
			return 0, err
		}
		return old, nil
	}
	for came := int64(0); came == 0; {
		var err error
		if came, err = fetch(NoOp, 0); err != nil {
			return err
		}
	}
	for pass := range int64(passes) {
		first, err := fetch(Sum, 0)
		third, e := fetch(Sum, 2*perStripe)
		if err := errors.Join(err, e); err != nil {
			return err
		}
		if first != pass+1 || third != pass {
			return fmt.Errorf("after %d passes the elements are %d and %d, want %d and %d", pass, first, third, pass+1, pass)
		}
	}
	return nil
}

// TestStripeHeldForLong checks that a rank which serves messages does not wait for a stripe. It serves other ranks
// meanwhile. It continues with the message, and with later ones of its sender, when it can.
func TestStripeHeldForLong(t *testing.T) { jobtest.Hosts(t, 4, stripeHeld) }

// stripeEnded has rank 0 end its part of the window while a message waits for a stripe.
var stripeEnded = jobtest.Register("a stripe held over the end", func(ctx context.Context, w *world.World) error {
	win, err := Allocate[int64](ctx, w, 2*perStripe)
	if err != nil {
		return err
	}
	stripe := win.core.own.control.stripe(win.view.offset(perStripe))
	if w.Rank() == 0 {
		win.core.lockStripe(stripe)
	}
	if err := errors.Join(win.Lock(ctx, Shared, 0), w.Barrier(ctx)); err != nil {
		return err
	}
	if w.Rank() == 1 {
		err := errors.Join(win.Accumulate(Sum, slices.Repeat([]int64{1}, 2*perStripe), 0, 0))
		var refused *job.RejectionError
		if e := win.Flush(ctx, 0); !errors.As(e, &refused) {
			err = errors.Join(err, fmt.Errorf("error is %v, want a refusal", e))
		}
		return errors.Join(err, w.Barrier(ctx))
	}
	for came := int64(0); came == 0; {
		if err := errors.Join(win.FetchAndOp(NoOp, 0, &came, 0, 0), ctx.Err()); err != nil {
			return err
		}
		job.Of(w).Poll()
	}
	win.core.server.end()
	win.core.giveStripe(stripe)
	err = w.Barrier(ctx)
	if got := win.Local()[perStripe:]; !slices.Equal(got, make([]int64, perStripe)) {
		err = errors.Join(err, fmt.Errorf("elements of a part that has ended are %v", got))
	}
	return err
})

// TestStripeHeldOverTheEnd looks that what was put off is refused when the window is closed.
func TestStripeHeldOverTheEnd(t *testing.T) {
	t.Run("apart", func(t *testing.T) { jobtest.Apart(t, 2, stripeEnded) })
	t.Run("tcp", func(t *testing.T) { jobtest.TCP(t, 2, stripeEnded) })
}
