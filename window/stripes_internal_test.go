package window

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/world"
)

// heldStripe has rank 1 killed with the lock of a stripe of rank 0's window in its
// hands, where accumulates of rank 0 and 2 then wait for it.
var heldStripe = jobtest.Register("dying with a stripe", func(ctx context.Context, w *world.World) error {
	win, err := Allocate[int64](ctx, w, 100)
	if err != nil {
		return err
	}
	if w.Rank() == 1 {
		target, err := win.core.peer(0)
		if err != nil {
			return err
		}
		win.core.lockStripe(target.control.stripe(win.view.offset(7)))
	}
	if err := w.Barrier(ctx); err != nil {
		return err
	}
	jobtest.Signal("ready")
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
			if err := w.Err(2 - w.Rank()); err != nil {
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
	// Over TCP no rank takes a stripe of another.
	jobtest.StartWith(t, 3, heldStripe, func(int) []string { return []string{"RMA_DEVICE=shm", "RMA_HOST="} }).Killed(1)
}

// TestLayoutHasRoomForEverything looks at the words that a control block has for
// windows of all sizes, at their ends.
func TestLayoutHasRoomForEverything(t *testing.T) {
	for _, ranks := range []int{1, 2, 63, 64, 65, 1000, 4096} {
		for _, bytes := range []uint64{0, 1, 63, 64, 65, 4096, 64 << 10, 64<<10 + 1, 1 << 20, 1<<30 + 5, 1 << 40} {
			for _, slots := range []int{0, 1, 16, maxNotifications} {
				l := layoutOf(ranks, 0, bytes, slots)
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

// TestStrayStripe checks that a lock word which names no rank delays no rank.
func TestStrayStripe(t *testing.T) {
	for _, stray := range []uint32{1, 2, 77, 1 << 31, 1<<32 - 1} {
		alone(t, func(ctx context.Context, w *world.World) error {
			win, err := Allocate[int64](ctx, w, 100)
			if err != nil {
				return err
			}
			win.core.own.control.stripe(8).Store(stray)
			err = errors.Join(win.LockAll(ctx), win.Accumulate(Sum, []int64{1}, 0, 1), win.UnlockAll(ctx))
			if got := win.Local()[1]; got != 1 {
				t.Errorf("element is %d, want 1", got)
			}
			return errors.Join(err, win.Close())
		})
	}
}

// TestStripeOfTheLate has a rank fail, by its body's error, while another goroutine of it holds a stripe. No rank takes
// the stripe over from that goroutine, which releases it.
func TestStripeOfTheLate(t *testing.T) {
	early := errors.New("body returns")
	done := make(chan error, 1)
	err := world.Run(t.Context(), 2, func(ctx context.Context, w *world.World) error {
		win, err := Allocate[int64](ctx, w, 100)
		if err != nil {
			return err
		}
		if w.Rank() == 1 {
			target, err := win.core.peer(0)
			if err != nil {
				return err
			}
			stripe := target.control.stripe(8)
			win.core.lockStripe(stripe)
			err = w.Barrier(ctx)
			go func() {
				for job.Of(w).FailureCount() == 0 {
					runtime.Gosched()
				}
				taken := stripe.Load() != win.core.lockWord
				stripe.Store(0)
				if taken {
					done <- errors.New("the stripe was taken over from who runs on")
					return
				}
				done <- nil
			}()
			return errors.Join(err, early)
		}
		word := lockWordOf(1)
		err = w.Barrier(ctx)
		for job.Of(w).FailureCount() == 0 {
			runtime.Gosched()
		}
		if win.core.isDead(word) {
			t.Error("a goroutine of this process is taken for dead")
		}
		return errors.Join(err, win.Lock(ctx, Shared, 0), win.Accumulate(Sum, []int64{1}, 0, 1), win.Unlock(ctx, 0), <-done)
	})
	require.ErrorIs(t, err, early)
	var failed *world.RankError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, 1, failed.Rank, "%v", err)
}
