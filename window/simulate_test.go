package window_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/hint"
	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/internal/simtest"
	"github.com/onesided/rma/scheduler"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/sim"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// simulated runs body on the cards of a profile, and gives a sum over all that they did.
func simulated(t *testing.T, profile string, seed uint64, n int, body func(ctx context.Context, w *world.World) error) (trace uint64, events uint64) {
	s := simtest.New(t, profile, seed)
	sum := fnv.New64a()
	s.Trace(func(e sim.Event) { _, _ = io.WriteString(sum, e.String()) })
	require.NoError(t, world.Simulate(t.Context(), s, n, body))
	return sum.Sum64(), s.Events()
}

// neighborly is a program in which each rank works on the windows of others in all modes.
func neighborly(ctx context.Context, w *world.World) error {
	win, err := window.Allocate[int64](ctx, w, 64)
	if err != nil {
		return err
	}
	next := (w.Rank() + 1) % w.Size()
	values, got := make([]int64, 32), make([]int64, 32)
	for i := range values {
		values[i] = int64(w.Rank()*100 + i)
	}
	if err := win.Fence(ctx); err != nil {
		return err
	}
	for range 5 {
		if err := win.Put(values, next, 0); err != nil {
			return err
		}
		if err := win.Accumulate(window.Sum, values[:1], 0, 40); err != nil {
			return err
		}
		if err := win.Fence(ctx); err != nil {
			return err
		}
	}
	if err := win.Get(got, next, 0); err != nil {
		return err
	}
	if err := win.Fence(ctx, window.NoSucceed); err != nil {
		return err
	}
	if !slices.Equal(got, values) {
		return fmt.Errorf("rank %d read %v", w.Rank(), got)
	}
	for target := range min(w.Size(), 8) {
		if err := win.Lock(ctx, window.Exclusive, target); err != nil {
			return err
		}
		var old int64
		if err := win.FetchAndOp(window.Sum, 1, &old, target, 50); err != nil {
			return err
		}
		if err := win.Unlock(ctx, target); err != nil {
			return err
		}
	}
	if err := w.Barrier(ctx); err != nil {
		return err
	}
	if w.Rank() < 8 && win.Local()[50] != int64(w.Size()) {
		return fmt.Errorf("rank %d counted %d", w.Rank(), win.Local()[50])
	}
	return win.Close()
}

// The same seed gives the same run, to the last event.
func TestSimulatedAgain(t *testing.T) {
	busy.Acquire(t)
	for _, n := range []int{1, 5, 17} {
		first, events := simulated(t, "ndr-2024", 7, n, neighborly)
		again, eventsAgain := simulated(t, "ndr-2024", 7, n, neighborly)
		require.Equal(t, first, again, "%d ranks, %d and %d events", n, events, eventsAgain)
	}
}

func TestSimulatedProfiles(t *testing.T) {
	busy.Acquire(t)
	for _, name := range sim.Profiles() {
		t.Run(name, func(t *testing.T) { simulated(t, name, 1, 5, neighborly) })
	}
}

// Complete waits only for the completion of direct operations. Nothing is sent after the message that notifies the
// target.
func TestCompleteSendsNoMore(t *testing.T) {
	const epochs = 10
	for _, bytes := range []int{16384, 1 << 20} {
		completeSendsNoMore(t, epochs, bytes)
	}
}

func completeSendsNoMore(t *testing.T, epochs, bytes int) {
	s := simtest.New(t, "pcix-2005", 1)
	posted := 0
	s.Trace(func(e sim.Event) {
		if e.Kind == sim.Posted && e.Rank == 0 {
			posted++
		}
	})
	require.NoError(t, world.Simulate(t.Context(), s, 2, func(ctx context.Context, w *world.World) error {
		win, err := window.Allocate[byte](ctx, w, 2*bytes, hint.Without(scheduler.Adapt))
		if err != nil {
			return err
		}
		other, err := win.Group(1 - w.Rank())
		if err != nil {
			return err
		}
		data := make([]byte, 2*bytes)
		region, err := job.Of(w).Register(data, verbs.LocalWrite)
		if err != nil {
			return err
		}
		for range epochs {
			if w.Rank() == 1 {
				if err := errors.Join(win.Post(ctx, other), win.Wait(ctx)); err != nil {
					return err
				}
				continue
			}
			// The post has come, so that nothing rides.
			w.Compute(time.Millisecond)
			before := posted
			if err := errors.Join(win.Start(ctx, other), win.Put(data[:bytes], 1, 0), win.Get(data[bytes:], 1, bytes), win.Complete(ctx)); err != nil {
				return err
			}
			if n := posted - before; n != 3 {
				return fmt.Errorf("%d requests for a put and a get of %d bytes, and a Complete", n, bytes)
			}
		}
		return errors.Join(region.Deregister(), win.Close())
	}))
}

// Small operations from memory that the program has not registered are not registered, each by
// itself, either: that costs more than all the rest.
func TestSmallNeedNoRegistration(t *testing.T) {
	for _, way := range []struct {
		name    string
		without scheduler.Scheme
		bytes   int
		gets    bool
	}{
		{"packed", scheduler.Adapt, 1024, true},
		{"trials", 0, 8, true},
		{"inline", scheduler.Pack, 64, false},
	} {
		t.Run(way.name, func(t *testing.T) {
			s := simtest.New(t, "ndr-2024", 1)
			registered, counting := 0, false
			s.Trace(func(e sim.Event) {
				if counting && e.Kind == sim.Registered {
					registered++
				}
			})
			require.NoError(t, world.Simulate(t.Context(), s, 4, func(ctx context.Context, w *world.World) error {
				win, err := window.Allocate[byte](ctx, w, 2*way.bytes, hint.Without(way.without))
				if err != nil {
					return err
				}
				data := make([]byte, 2*way.bytes)
				for epoch := range 100 {
					if err := win.Fence(ctx); err != nil {
						return err
					}
					counting = epoch > 50 // all are connected, and have what letters need
					next := (w.Rank() + 1) % w.Size()
					if err := win.Put(data[:way.bytes], next, 0); err != nil {
						return err
					}
					if !way.gets {
						continue
					}
					if err := win.Get(data[way.bytes:], next, way.bytes); err != nil {
						return err
					}
				}
				return errors.Join(win.Fence(ctx, window.NoSucceed), win.Close())
			}))
			require.Zero(t, registered)
		})
	}
}

// LockAll with NoCheck sends nothing, and an operation under it reaches its target only.
func TestLockAllUnchecked(t *testing.T) {
	require.NoError(t, world.Simulate(t.Context(), simtest.New(t, "ndr-2024", 1), 16, func(ctx context.Context, w *world.World) error {
		win, err := window.Allocate[int64](ctx, w, 1)
		if err != nil {
			return err
		}
		win.Local()[0] = 0
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		before := job.Of(w).Frames()
		if err := win.LockAll(ctx, window.NoCheck); err != nil {
			return err
		}
		next := (w.Rank() + 1) % w.Size()
		if err := win.Accumulate(window.Sum, []int64{7}, next, 0); err != nil {
			return err
		}
		if sent := job.Of(w).Frames() - before; sent > 2 {
			return fmt.Errorf("%d frames for a LockAll without locks", sent)
		}
		if err := errors.Join(win.UnlockAll(ctx), w.Barrier(ctx)); err != nil {
			return err
		}
		if got := win.Local()[0]; got != 7 {
			return fmt.Errorf("UnlockAll left %d", got)
		}
		// One with locks excludes as it did.
		if err := win.LockAll(ctx); err != nil {
			return err
		}
		return errors.Join(win.UnlockAll(ctx), win.Close())
	}))
}
