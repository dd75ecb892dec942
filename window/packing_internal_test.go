package window

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/onesided/rma/scheduler"
	"github.com/onesided/rma/world"
	"github.com/onesided/rma/world/worldtest"
)

// putInParts puts more than the packets hold that may be on their way, by calls that are cut
// short where there is no room: each goes on where the one before it ended.
var putInParts = worldtest.Register("a put in parts", func(ctx context.Context, w *world.World) error {
	const count = 1 << 20
	win, err := Allocate[int64](ctx, w, count, Without(scheduler.Adapt|scheduler.Early))
	if err != nil {
		return err
	}
	if w.Rank() == 0 {
		err = errors.Join(win.Lock(ctx, Exclusive, 1), win.Flush(ctx, 1), sendInParts(w, win, count), win.Unlock(ctx, 1))
	}
	err = errors.Join(err, w.Barrier(ctx))
	for i, got := range win.Local() {
		if w.Rank() == 1 && got != int64(i) {
			return errors.Join(err, fmt.Errorf("element %d is %d", i, got))
		}
	}
	return errors.Join(err, win.Close())
})

func sendInParts(w *world.World, win *Window[int64], count int) error {
	p, err := win.peer(1)
	if err != nil {
		return err
	}
	d := p.deferred
	d.mu.Lock()
	d.planner = *scheduler.NewPlanner(scheduler.Conditions{Costs: d.link.Costs(), Scheme: d.scheme, Packet: d.link.MaxPayload()})
	d.mu.Unlock()
	values := make([]int64, count)
	for i := range values {
		values[i] = int64(i)
	}
	if err := win.Put(values, 1, 0); err != nil {
		return err
	}
	const patience = 30 * time.Second
	for until := time.Now().Add(patience); time.Now().Before(until); {
		// Nothing makes room during a call.
		w.Exclude(func() { err = d.start(noWait, scheduler.Nothing) })
		if !errors.Is(err, context.Canceled) {
			return err
		}
		for range 100 {
			w.Poll()
		}
	}
	return fmt.Errorf("in %v calls have not sent %d elements: %w", patience, count, err)
}

func TestPutInParts(t *testing.T) { worldtest.Apart(t, 2, putInParts) }
