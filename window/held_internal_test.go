package window

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/epoch"
	"github.com/onesided/rma/internal/latch"
	"github.com/onesided/rma/internal/prefetch"
	"github.com/onesided/rma/world"
)

func needsHolding(t *testing.T) {
	if !prefetch.Works {
		t.Skipf("skipped: on %s nothing is held back: there is no prefetch", runtime.GOARCH)
	}
}

// alone runs body on the one rank of a job. It is the test's goroutine that checks.
func alone(t *testing.T, body func(ctx context.Context, w *world.World) error) {
	t.Helper()
	require.NoError(t, world.Run(t.Context(), 1, body))
}

const far = farBytes / 8

// TestWhatIsHeld looks at how many accumulates of a kind of window are held back.
func TestWhatIsHeld(t *testing.T) {
	needsHolding(t)
	for _, c := range []struct {
		name    string
		count   int
		options []Option
		// held after each of some accumulates of one element
		held []uint32
	}{
		{"the first is applied at once, and the seventeenth has a batch applied", far, nil, []uint32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 1, 2}},
		{"atomic instructions", far, []Option{SingleElement()}, []uint32{0, 1, 2}},
		{"one operation", far, []Option{SameOp()}, []uint32{0, 1, 2}},
		{"a smaller window", far - 1, nil, []uint32{0, 0, 0}},
		{"immediate", far, []Option{Immediate()}, []uint32{0, 0, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			alone(t, func(ctx context.Context, w *world.World) error {
				win, err := Allocate[int64](ctx, w, c.count, c.options...)
				if err != nil {
					return err
				}
				// The first operation on a target maps it, and the first accumulate says which SameOp means.
				err = errors.Join(win.LockAll(ctx), win.Accumulate(Sum, []int64{0}, 0, 0), win.Flush(ctx, 0))
				for round := range 2 {
					for i, want := range c.held {
						err = errors.Join(err, win.Accumulate(Sum, []int64{1}, 0, 7*i))
						if got := win.core.held.state.Load(); got != want {
							t.Errorf("round %d: %d updates are held after accumulate %d, want %d", round, got, i, want)
						}
					}
					if err = errors.Join(err, win.Flush(ctx, 0)); win.core.held.state.Load() != 0 {
						t.Error("something is held after Flush")
					}
				}
				for i := range c.held {
					if win.Local()[7*i] != 2 {
						t.Errorf("element %d is %d, want 2", 7*i, win.Local()[7*i])
					}
				}
				return errors.Join(err, win.UnlockAll(ctx), win.Close())
			})
		})
	}
}

// TestHeldOverTheEnd has goroutines accumulate while another opens and closes the
// epoch: an accumulate that was not refused is applied when the epoch is closed.
func TestHeldOverTheEnd(t *testing.T) {
	needsHolding(t)
	alone(t, func(ctx context.Context, w *world.World) error {
		win, err := Allocate[int64](ctx, w, far)
		if err != nil {
			return err
		}
		err = errors.Join(win.LockAll(ctx), win.Put([]int64{0}, 0, 0), win.UnlockAll(ctx))
		var stop atomic.Bool
		var issued atomic.Int64
		var together sync.WaitGroup
		for range 2 {
			together.Go(func() {
				for !stop.Load() {
					switch err := win.Accumulate(Sum, []int64{1}, 0, 5); {
					case err == nil:
						issued.Add(1)
					case !errors.Is(err, epoch.ErrNoEpoch):
						t.Error(err)
						return
					}
				}
			})
		}
		for range 20_000 {
			err = errors.Join(err, win.Lock(ctx, Exclusive, 0), win.Unlock(ctx, 0))
			if held := win.core.held.state.Load(); held != 0 {
				t.Errorf("%d updates are held outside an epoch", held)
				break
			}
		}
		stop.Store(true)
		together.Wait()
		if got := win.Local()[5]; got != issued.Load() {
			t.Errorf("element is %d after %d accumulates", got, issued.Load())
		}
		// One that has found the epoch open and is late.
		if late := int64(1); win.view.hold(0, addressOf(&win.Local()[5]), win.core.own.control.stripe(40), win.view.kernels.apply[Sum], nil, addressOf(&late)) || win.core.held.state.Load() != 0 {
			t.Error("an update is held after its epoch")
		}
		return errors.Join(err, win.Close())
	})
}

// isFree returns when the latch can be taken.
func isFree(l *latch.Latch) {
	l.Lock()
	defer l.Unlock()
}

// TestHeldForAStripe has a batch wait for a stripe that is taken. Other goroutines of the rank can take its latches
// meanwhile, and continue.
func TestHeldForAStripe(t *testing.T) {
	needsHolding(t)
	alone(t, func(ctx context.Context, w *world.World) error {
		win, err := Allocate[int64](ctx, w, far)
		if err != nil {
			return err
		}
		err = errors.Join(win.LockAll(ctx), win.Put([]int64{0}, 0, 0))
		err = errors.Join(err, win.Accumulate(Sum, []int64{1}, 0, 1), win.Accumulate(Sum, []int64{1}, 0, 1))
		stripe := win.core.own.control.stripe(8)
		win.core.lockStripe(stripe)
		flushed, unlocked := make(chan error, 1), make(chan error, 1)
		go func() { flushed <- win.Flush(ctx, 0) }()
		for win.core.held.state.Load()&busy == 0 {
			runtime.Gosched()
		}
		isFree(&win.core.held.latch)
		// It is held in the other batch, and not applied before the first.
		for range 3 {
			err = errors.Join(err, win.Accumulate(Sum, []int64{1}, 0, far/2))
		}
		if got := win.Local()[far/2]; got != 0 {
			t.Errorf("%d updates overtook those before them", got)
		}
		go func() { unlocked <- win.UnlockAll(ctx) }()
		for win.core.epochs.Open(0) {
			runtime.Gosched()
		}
		isFree(&win.core.mu)
		stripe.Store(0)
		err = errors.Join(err, <-flushed, <-unlocked)
		if one, two := win.Local()[1], win.Local()[far/2]; one != 2 || two != 3 {
			t.Errorf("elements are %d and %d, want 2 and 3", one, two)
		}
		return errors.Join(err, win.Close())
	})
}
