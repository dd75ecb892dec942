package window

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/onesided/rma/internal/hint"
	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/scheduler"
	"github.com/onesided/rma/world"
)

// requestGranted has a lock granted at the moment at which it is asked for, by a Test whose
// operation does not ride with it: the operation has not been sent then, and is not complete.
var requestGranted = jobtest.Register("a request whose lock is granted at once", func(ctx context.Context, w *world.World) error {
	win, err := Allocate[int64](ctx, w, 8, hint.Without(scheduler.Pack))
	if err != nil {
		return err
	}
	win.Local()[0] = 5
	err = w.Barrier(ctx)
	if w.Rank() == 0 {
		var got [1]int64
		err = errors.Join(err, win.Lock(ctx, Shared, 1))
		r, failed := win.RGet(got[:], 1, 0)
		if err = errors.Join(err, failed); err != nil {
			return err
		}
		// What the rank will say.
		win.core.granted[1].Store(win.core.tickets[1].Load() + 1)
		for done := false; !done && err == nil; {
			done, err = r.Test()
		}
		if got[0] != 5 {
			err = errors.Join(err, fmt.Errorf("complete when %d has been got, want 5", got[0]))
		}
		err = errors.Join(err, win.Unlock(ctx, 1))
	}
	return errors.Join(err, w.Barrier(ctx), win.Close())
})

func TestRequestGranted(t *testing.T) { jobtest.Apart(t, 2, requestGranted) }
