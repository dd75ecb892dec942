package window

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/onesided/rma/epoch"
	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/world"
)

// untilServed makes progress until reached tells that what others have sent has come so far.
func untilServed(ctx context.Context, w *world.World, reached func() bool) error {
	for {
		job.Of(w).Poll()
		there := false
		job.Of(w).Exclude(func() { there = reached() })
		if there || ctx.Err() != nil {
			return ctx.Err()
		}
		runtime.Gosched()
	}
}

// withOther is a window of two ranks, and the group of the other one.
func withOther(ctx context.Context, w *world.World, count int) (*Window[int64], Group, error) {
	win, err := Allocate[int64](ctx, w, count)
	if err != nil {
		return nil, Group{}, err
	}
	other, err := win.Group(1 - w.Rank())
	return win, other, err
}

// rideStripe has a Complete ride that waits for a stripe when its target has posted, and rank 0
// lock the target then: what is accumulated under the lock is not overtaken by what came
// before.
var rideStripe = jobtest.Register("a lock behind a Complete that waits for a stripe", func(ctx context.Context, w *world.World) error {
	win, other, err := withOther(ctx, w, 2*perStripe)
	if err != nil {
		return err
	}
	if w.Rank() == 0 {
		err = errors.Join(
			win.Start(ctx, other), win.Accumulate(Sum, []int64{1}, 1, perStripe), win.Accumulate(Replace, []int64{5}, 1, 0), win.Complete(ctx),
			win.Lock(ctx, Shared, 1), win.Accumulate(Replace, []int64{6}, 1, 0), win.Unlock(ctx, 1),
		)
		return errors.Join(err, w.Barrier(ctx), win.Close())
	}
	stripe := win.core.own.control.stripe(win.view.offset(perStripe))
	win.core.lockStripe(stripe)
	err = untilServed(ctx, w, win.core.server.waiting.Load)
	err = errors.Join(err, win.Post(ctx, other), untilServed(ctx, w, func() bool { return len(win.core.server.wishes) == 2 || win.Local()[0] == 6 }))
	waiting := 0
	job.Of(w).Exclude(func() {
		win.core.giveStripe(stripe)
		win.core.server.grantWishes()
		waiting = len(win.core.server.wishes)
	})
	if waiting > 0 {
		err = errors.Join(err, fmt.Errorf("%d wait still, though the stripe was free", waiting))
	}
	err = errors.Join(err, win.Wait(ctx), w.Barrier(ctx))
	if one, two := win.Local()[0], win.Local()[perStripe]; one != 6 || two != 1 {
		err = errors.Join(err, fmt.Errorf("elements are %d and %d, want 6 and 1", one, two))
	}
	return errors.Join(err, win.Close())
})

func TestRideStripe(t *testing.T) { jobtest.Apart(t, 2, rideStripe) }

// rideFailed has rank 1 hear that rank 0 has failed, whose Complete waits for a post there: what rides
// with it is forgotten, and its memory used again.
var rideFailed = jobtest.Register("a Complete of one that fails", func(ctx context.Context, w *world.World) error {
	win, err := Allocate[int64](ctx, w, 8)
	if err != nil {
		return err
	}
	other, err := win.Group(1 - w.Rank())
	if err != nil {
		return err
	}
	if w.Rank() == 0 {
		err = errors.Join(win.Start(ctx, other), win.Put([]int64{1}, 1, 0), win.Complete(ctx), w.Barrier(ctx))
		if e := win.Close(); !errors.Is(e, epoch.ErrNotPosted) {
			err = errors.Join(err, fmt.Errorf("error of Close is %v, want that nothing was posted", e))
		}
		return err
	}
	err = untilServed(ctx, w, win.core.server.waiting.Load)
	win.core.server.failed(0)
	job.Of(w).Exclude(func() {
		if waiting, spare := len(win.core.server.early), len(win.core.server.spare); waiting != 0 || spare != 1 {
			err = errors.Join(err, fmt.Errorf("%d wishes wait, %d can be used again, want 0 and 1", waiting, spare))
		}
	})
	return errors.Join(err, w.Barrier(ctx), win.Close())
})

func TestRideFailed(t *testing.T) { jobtest.Apart(t, 2, rideFailed) }

// rideNotified has a goroutine of rank 1 wait for a notification that is piggybacked on a lock request. Another
// goroutine of the rank has that lock. When it releases the lock, the request is granted by the next progress of any
// goroutine, and the notification arrives.
var rideNotified = jobtest.Register("a notification that waits for a lock", func(ctx context.Context, w *world.World) error {
	win, err := Allocate[int64](ctx, w, 8)
	if err != nil {
		return err
	}
	switch w.Rank() {
	case 0:
		err = errors.Join(w.Barrier(ctx), win.Lock(ctx, Exclusive, 1), win.PutNotify([]int64{1}, 1, 0, 0), win.Unlock(ctx, 1))
	case 1:
		err = errors.Join(win.Lock(ctx, Exclusive, 1), w.Barrier(ctx))
		told := make(chan error)
		go func() { told <- win.WaitNotify(ctx, 0, 1) }()
		err = errors.Join(err, untilServed(ctx, w, func() bool { return win.core.readers.Load() > 0 && len(win.core.server.wishes) == 1 }))
		if n := win.core.own.control.slot(0).Load(); n != 0 {
			err = errors.Join(err, fmt.Errorf("%d notifications under the lock of another", n))
		}
		err = errors.Join(err, win.Unlock(ctx, 1))
		err = errors.Join(err, untilServed(ctx, w, func() bool { return len(win.core.server.wishes) == 0 }), <-told)
		if win.Local()[0] != 1 {
			err = errors.Join(err, fmt.Errorf("element is %d when it was notified of, want 1", win.Local()[0]))
		}
	default:
		err = w.Barrier(ctx)
	}
	return errors.Join(err, w.Barrier(ctx), win.Close())
})

func TestRideNotified(t *testing.T) {
	t.Run("apart", func(t *testing.T) { jobtest.Apart(t, 2, rideNotified) })
	t.Run("hosts", func(t *testing.T) { jobtest.Hosts(t, 3, rideNotified) })
}

// rideGranted has rank 1 grant what rank 0, which waits for its lock, has not asked for, and
// once more what it has been granted: the program keeps what the true answer brought.
var rideGranted = jobtest.Register("a grant of what was not asked for", func(ctx context.Context, w *world.World) error {
	win, err := Allocate[int64](ctx, w, 8)
	if err != nil {
		return err
	}
	if w.Rank() == 1 {
		err = errors.Join(win.Lock(ctx, Exclusive, 1), w.Barrier(ctx), w.Barrier(ctx))
		p, failed := win.core.peer(0)
		if err = errors.Join(err, failed); err != nil {
			return err
		}
		grant := func(ticket uint64, answer []byte) error {
			return errors.Join(p.link.Tell(&job.Message{Kind: messageGranted, Service: win.core.number, X: ticket}, answer), p.link.Flush(ctx))
		}
		for _, ticket := range []uint64{1<<32 + 1, 2, 1<<31 - 1} {
			for _, answer := range [][]byte{nil, make([]byte, 8)} {
				var refused *job.RejectionError
				if e := grant(ticket, answer); !errors.As(e, &refused) {
					err = errors.Join(err, fmt.Errorf("ticket %d with %d bytes: error is %v, want a refusal", ticket, len(answer), e))
				}
			}
		}
		win.Local()[0] = 9
		return errors.Join(err, win.Unlock(ctx, 1), w.Barrier(ctx), grant(1, make([]byte, 8)), w.Barrier(ctx), win.Close())
	}
	ended, end := context.WithCancel(ctx)
	end()
	got := []int64{-1}
	err = errors.Join(w.Barrier(ctx), win.Lock(ctx, Shared, 1), win.Get(got, 1, 0))
	if e := win.Flush(ended, 1); !errors.Is(e, context.Canceled) {
		err = errors.Join(err, fmt.Errorf("error of a Flush under the lock of another is %v", e))
	}
	err = errors.Join(err, w.Barrier(ctx), win.Flush(ctx, 1))
	if ticket := win.core.tickets[1].Load(); got[0] != 9 || ticket != 1 {
		err = errors.Join(err, fmt.Errorf("got %d by ticket %d, want 9 by 1", got[0], ticket))
	}
	got[0] = -2
	err = errors.Join(err, w.Barrier(ctx), w.Barrier(ctx))
	if got[0] != -2 {
		err = errors.Join(err, fmt.Errorf("%d was written to the program's memory", got[0]))
	}
	return errors.Join(err, win.Unlock(ctx, 1), win.Close())
})

func TestRideGranted(t *testing.T) { jobtest.Apart(t, 2, rideGranted) }
