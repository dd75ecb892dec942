package window

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/onesided/rma/epoch"
	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/world"
)

// lateOne has operations that have found the epoch open come to their queue when the epoch
// has been closed: they are refused, and nothing is queued.
var lateOne = jobtest.Register("operations that come late", func(ctx context.Context, w *world.World) error {
	win, err := Allocate[int64](ctx, w, 64)
	if err != nil {
		return err
	}
	other := 1 - w.Rank()
	err = errors.Join(win.Lock(ctx, Exclusive, other), win.Put([]int64{1}, other, 0), win.Unlock(ctx, other))
	p, failed := win.core.peer(other)
	if err = errors.Join(err, failed); err != nil {
		return err
	}
	values := make([]int64, 64)
	for name, come := range map[string]func() error{
		"short": func() error {
			return p.deferred.put(addressOf(&values[0]), 8, 0)
		},
		"long": func() error {
			return win.view.accumulateRemote(p, Sum, operands{origin: addressOf(&values[0]), count: len(values)}, 0)
		},
		"notification": func() error { return p.deferred.notify(0, 8) },
	} {
		if refused := come(); !errors.Is(refused, epoch.ErrNoEpoch) || len(p.deferred.queue.Operations) > 0 {
			err = errors.Join(err, fmt.Errorf("%s: %v, want an ErrNoEpoch, with %d queued", name, refused, len(p.deferred.queue.Operations)))
		}
	}
	return errors.Join(err, win.Close())
})

func TestLateOne(t *testing.T) { jobtest.Apart(t, 2, lateOne) }
