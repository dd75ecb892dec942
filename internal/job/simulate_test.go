package job_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/internal/simtest"
	"github.com/onesided/rma/verbs/sim"
	"github.com/onesided/rma/world"
)

// Ranks that meet often are at one time when they have, whatever their number, and the same
// seed has them there at the same time again.
func TestSimulate(t *testing.T) {
	busy.Acquire(t)
	for _, n := range []int{1, 2, 5, 64} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			var ended [2][]time.Duration
			for again := range ended {
				times := make([]time.Duration, n)
				require.NoError(t, world.Simulate(t.Context(), simtest.New(t, "ndr-2024", 1), n, func(ctx context.Context, w *world.World) error {
					for range 10 {
						if err := w.Barrier(ctx); err != nil {
							return err
						}
					}
					times[w.Rank()] = w.Now()
					return nil
				}))
				ended[again] = times
				require.Equal(t, n > 1, slices.Min(times) > 0)
				require.Less(t, slices.Max(times)-slices.Min(times), 20*time.Microsecond)
			}
			require.Equal(t, ended[0], ended[1])
		})
	}
}

// A job takes a simulator of its own, and a plan of faults that is about its ranks.
func TestSimulateRefuses(t *testing.T) {
	nothing := func(context.Context, *world.World) error { return nil }
	used := simtest.New(t, "ndr-2024", 1)
	require.NoError(t, world.Simulate(t.Context(), used, 2, nothing))
	err := world.Simulate(t.Context(), used, 2, nothing)
	require.ErrorIs(t, err, world.ErrArgument)
	require.ErrorContains(t, err, "the simulator has 2 ranks already; each job takes a new one")
	for _, plan := range []string{"at 2ms kill rank 4", "at 2ms fail-pair rank 0 peer 4", "at event 7 power-loss rank 4,1"} {
		s := simtest.New(t, "ndr-2024", 1)
		faults, err := sim.ParseFaults("at 1ms starve rank 1 times 2\n" + plan)
		require.NoError(t, err)
		require.NoError(t, s.Inject(faults...))
		err = world.Simulate(t.Context(), s, 4, nothing)
		require.ErrorIs(t, err, world.ErrArgument)
		require.ErrorContains(t, err, "names rank 4; the job has ranks 0 to 3")
	}
}

// A rank that ends early is missed by those who wait for it, as a process would be.
func TestSimulateFailure(t *testing.T) {
	wrong := errors.New("wrong")
	err := world.Simulate(t.Context(), simtest.New(t, "ndr-2024", 1), 5, func(ctx context.Context, w *world.World) error {
		if w.Rank() == 3 {
			return wrong
		}
		err := w.Barrier(ctx)
		var failed *world.PeerError
		if !errors.As(err, &failed) || failed.Rank != 3 {
			return fmt.Errorf("the barrier ended with %w", err)
		}
		return err
	})
	require.ErrorIs(t, err, wrong)
	var rank *world.RankError
	require.ErrorAs(t, err, &rank)
	require.Equal(t, 3, rank.Rank)
}

// Ranks that wait for what never comes end when their patience does.
func TestSimulateDeadlock(t *testing.T) {
	err := world.Simulate(t.Context(), simtest.New(t, "ndr-2024", 1), 2, func(ctx context.Context, w *world.World) error {
		if w.Rank() == 0 {
			return w.Barrier(ctx)
		}
		wait := job.Of(w).NewWaiter()
		defer wait.Finish()
		for {
			if err := wait.Pause(ctx); err != nil {
				return err
			}
		}
	})
	require.ErrorIs(t, err, world.ErrDeadlock)
}

// What a rank computes takes virtual time, and what others ask of it meanwhile is done.
func TestSimulateCompute(t *testing.T) {
	require.NoError(t, world.Simulate(t.Context(), simtest.New(t, "ndr-2024", 1), 2, func(ctx context.Context, w *world.World) error {
		begun := w.Now()
		w.Compute(time.Second)
		if took := w.Now() - begun; took != time.Second {
			return fmt.Errorf("computing for a second took %v", took)
		}
		return w.Barrier(ctx)
	}))
}

// Survivors of a rank that is killed shrink, and go on; if they all wait then, they hear of it.
func TestSimulateShrink(t *testing.T) {
	s := simtest.New(t, "ndr-2024", 1)
	require.NoError(t, s.Inject(sim.Fault{Kind: sim.Kill, Rank: 2, At: 5 * time.Millisecond}))
	sizes := make([]int, 5)
	err := world.Simulate(t.Context(), s, 5, func(ctx context.Context, w *world.World) error {
		for {
			err := w.Barrier(ctx)
			if err == nil {
				w.Compute(100 * time.Microsecond)
				continue
			}
			var failed *world.PeerError
			if !errors.As(err, &failed) {
				return err
			}
			break
		}
		small, err := w.Shrink(ctx)
		if err != nil {
			return err
		}
		sizes[w.Rank()] = small.Size()
		if err := small.Barrier(ctx); err != nil || small.Rank() != 0 {
			return err
		}
		// The others have left: nobody comes.
		if err := small.Barrier(ctx); err == nil {
			return errors.New("a barrier of one")
		}
		return nil
	})
	require.ErrorIs(t, err, sim.ErrFault)
	require.Equal(t, []int{4, 4, 0, 4, 4}, sizes)
}
