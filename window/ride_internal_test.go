package window

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/world"
)

// rideRefused has an operation that the target refuses ride with a lock among others: Unlock,
// or the Flush that has the lock taken, tells of it, the others are carried out, and the lock
// is given back.
var rideRefused = jobtest.Register("a refusal under a lock", func(ctx context.Context, w *world.World) error {
	win, err := Allocate[int64](ctx, w, 8)
	if err != nil {
		return err
	}
	if w.Rank() == 0 {
		for i, end := range []func() error{
			func() error { return win.Unlock(ctx, 1) },
			func() error {
				err := win.Flush(ctx, 1)
				if e := win.Unlock(ctx, 1); e != nil {
					return e
				}
				return err
			},
		} {
			var got int64
			err = errors.Join(err, win.Lock(ctx, Exclusive, 1), win.Accumulate(Sum, []int64{3}, 1, i))
			p, failed := win.core.peer(1)
			if err = errors.Join(err, failed); err != nil {
				return err
			}
			err = errors.Join(err,
				p.deferred.put(addressOf(new(int64)), 8, 64),
				win.FetchAndOp(Sum, 4, &got, 1, i))
			var refused *job.RejectionError
			if e := end(); !errors.As(e, &refused) || !strings.Contains(e.Error(), "put of 8 bytes at offset 64") {
				err = errors.Join(err, fmt.Errorf("error is %v, want a refusal that names the put", e))
			}
			if got != 3 {
				err = errors.Join(err, fmt.Errorf("fetched %d, want 3", got))
			}
		}
	}
	err = errors.Join(err, w.Barrier(ctx))
	if w.Rank() == 1 {
		// The lock is free.
		err = errors.Join(err, win.Lock(ctx, Exclusive, 1), win.Unlock(ctx, 1))
		if win.Local()[0] != 7 || win.Local()[1] != 7 {
			err = errors.Join(err, fmt.Errorf("elements are %v, want 7 and 7 first", win.Local()))
		}
	}
	return errors.Join(err, w.Barrier(ctx), win.Close())
})

func TestRideRefused(t *testing.T) { jobtest.Apart(t, 2, rideRefused) }

// rideRefusedLater has an operation that the target refuses ride with an Unlock that waits,
// and is cut short: the Unlock that ends the epoch tells of it, and nothing done meanwhile on
// another window does.
var rideRefusedLater = jobtest.Register("a refusal of what has waited", func(ctx context.Context, w *world.World) error {
	win, err := Allocate[int64](ctx, w, 8)
	if err != nil {
		return err
	}
	another, err := Allocate[int64](ctx, w, 8)
	if err != nil {
		return err
	}
	if w.Rank() == 1 {
		err = errors.Join(win.Lock(ctx, Exclusive, 1), w.Barrier(ctx), w.Barrier(ctx), win.Unlock(ctx, 1))
		return errors.Join(err, w.Barrier(ctx), another.Close(), win.Close())
	}
	p, failed := win.core.peer(1)
	if err = errors.Join(w.Barrier(ctx), failed); err != nil {
		return err
	}
	ended, end := context.WithCancel(ctx)
	end()
	err = errors.Join(win.Lock(ctx, Exclusive, 1),
		p.deferred.put(addressOf(new(int64)), 8, 64))
	if e := win.Unlock(ended, 1); !errors.Is(e, context.Canceled) {
		err = errors.Join(err, fmt.Errorf("error of an Unlock cut short is %v", e))
	}
	err = errors.Join(err, w.Barrier(ctx))
	// The lock of the other window is taken when this one has been granted.
	err = errors.Join(err, another.Lock(ctx, Exclusive, 1), another.Put([]int64{1}, 1, 0), another.Flush(ctx, 1), another.Unlock(ctx, 1))
	var refused *job.RejectionError
	if e := win.Unlock(ctx, 1); !errors.As(e, &refused) || !strings.Contains(e.Error(), "put of 8 bytes at offset 64") {
		err = errors.Join(err, fmt.Errorf("error is %v, want a refusal that names the put", e))
	}
	err = errors.Join(err, win.Lock(ctx, Exclusive, 1), win.Put([]int64{1}, 1, 0), win.Unlock(ctx, 1))
	return errors.Join(err, w.Barrier(ctx), another.Close(), win.Close())
})

func TestRideRefusedLater(t *testing.T) { jobtest.Apart(t, 2, rideRefusedLater) }
