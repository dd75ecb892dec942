package window

import (
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/world"
	"github.com/onesided/rma/world/worldtest"
)

// heldStripe has rank 1 killed with the lock of a stripe of rank 0's window in its
// hands, where accumulates of rank 0 and 2 then wait for it.
var heldStripe = worldtest.Register("dying with a stripe", func(ctx context.Context, w *world.World) error {
	win, err := Allocate[int64](ctx, w, 100)
	if err != nil {
		return err
	}
	if w.Rank() == 1 {
		target, err := win.peer(0)
		if err != nil {
			return err
		}
		win.lockStripe(target.control.stripe(win.offset(7)))
	}
	if err := w.Barrier(ctx); err != nil {
		return err
	}
	worldtest.Signal("ready")
	if w.Rank() == 1 {
		<-ctx.Done()
		return nil
	}
	// LockAll would need the dead too.
	if err := win.Lock(ctx, Shared, 0); err != nil {
		return err
	}
	for range 10 {
		if err := win.Accumulate(Sum, []int64{1}, 0, 7); err != nil {
			return err
		}
	}
	if err := win.Flush(ctx, 0); err != nil {
		return err
	}
	// Each sees the sum, and rank 0 stays until both have.
	for _, at := range []struct {
		element int
		sum     int64
	}{{7, 20}, {50, 2}} {
		var sum int64
		for sum != at.sum {
			if err := win.FetchAndOp(NoOp, 0, &sum, 0, at.element); err != nil {
				return err
			}
			if err := w.Failure(2 - w.Rank()); err != nil {
				return err
			}
		}
		if at.element == 7 {
			if err := win.Accumulate(Sum, []int64{1}, 0, 50); err != nil {
				return err
			}
		}
		if w.Rank() != 0 && at.element == 7 {
			return nil
		}
	}
	return nil
})

// TestStripeOfTheDead looks that a lock inside an accumulate is taken over when its
// holder dies.
func TestStripeOfTheDead(t *testing.T) {
	if os.Getenv("RMA_DEVICE") == "tcp" {
		t.Skip("RMA_DEVICE=tcp: nobody takes a stripe of another rank")
	}
	job := worldtest.Start(t, 3, heldStripe)
	for rank := range 3 {
		job.Await(rank, "ready")
	}
	job.Kill(1)
	errs := job.Wait()
	require.Error(t, errs[1])
	require.NoError(t, errs[2])
	require.NoError(t, errs[0])
}

// TestLayoutHasRoomForEverything looks at the words that a control block has for
// windows of all sizes, at their ends.
func TestLayoutHasRoomForEverything(t *testing.T) {
	for _, ranks := range []int{1, 2, 63, 64, 65, 1000, 4096} {
		for _, bytes := range []uint64{0, 1, 63, 64, 65, 4096, 64 << 10, 64<<10 + 1, 1 << 20, 1<<30 + 5, 1 << 40} {
			for _, slots := range []int{0, 1, 16, MaxNotifications} {
				l := layoutOf(ranks, bytes, slots)
				require.GreaterOrEqual(t, l.slotsAt, uintptr(pairsAt)+uintptr(ranks-1)*l.pairStride+pairBytes)
				require.GreaterOrEqual(t, l.stripesAt, l.slotsAt+uintptr(slots)*lineBytes)
				last := uintptr(0)
				if bytes > 0 {
					last = uintptr((bytes-1)>>l.stripeShift) * lineBytes
				}
				require.GreaterOrEqual(t, l.bytes, l.stripesAt+last+lineBytes)
				require.LessOrEqual(t, l.stripes, maxStripes+2)
				require.Zero(t, l.bytes%4096)
			}
		}
	}
}
