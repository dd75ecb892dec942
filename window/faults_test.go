package window_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/scheduler"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/sim"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// Flags that have TestFaults look at more plans, or at one again.
var (
	faultPlans = flag.Uint64("plans", 40, "how many plans of faults TestFaults draws for each number of ranks")
	faultSeed  = flag.Uint64("plan", 0, "the first seed of these plans")
)

// restless is a program of all kinds of synchronization. What it finds in its windows is
// right, however it ends.
func restless(ctx context.Context, w *world.World, options ...window.Option) error {
	win, err := window.Allocate[int64](ctx, w, 4096, options...)
	if err != nil {
		return err
	}
	n, me := w.Size(), w.Rank()
	next, last := (me+1)%n, (me+n-1)%n
	to, err := win.Group(next)
	if err != nil {
		return err
	}
	from, err := win.Group(last)
	if err != nil {
		return err
	}
	values, got := make([]int64, 2048), make([]int64, 2048)
	fill := func(of, turn int) {
		for i := range values {
			values[i] = int64(of*1e6 + turn*1e3 + i)
		}
	}
	for turn := range 6 {
		// Fences, with large and small operations.
		if err := win.Fence(ctx); err != nil {
			return err
		}
		fill(me, turn)
		if err := errors.Join(win.Put(values, next, 0), win.Accumulate(window.Sum, values[:3], next, 4000)); err != nil {
			return err
		}
		if err := win.Fence(ctx, window.NoSucceed); err != nil {
			return err
		}
		if fill(last, turn); !slices.Equal(win.Local()[:2048], values) {
			return fmt.Errorf("rank %d: contents of turn %d are %v…", me, turn, win.Local()[:4])
		}
		// A get and a put between neighbours.
		if err := errors.Join(win.Post(ctx, from), win.Start(ctx, to)); err != nil {
			return err
		}
		if err := errors.Join(win.Get(got, next, 0), win.Put(values[:5], next, 3000)); err != nil {
			return err
		}
		if err := win.Complete(ctx); err != nil {
			return errors.Join(err, win.Wait(ctx))
		}
		if err := win.Wait(ctx); err != nil {
			return err
		}
		if fill(me, turn); !slices.Equal(got, values) {
			return fmt.Errorf("rank %d: read in turn %d %v…", me, turn, got[:4])
		}
		// A counter under a lock.
		var old int64
		if err := win.Lock(ctx, window.Exclusive, 0); err != nil {
			return err
		}
		if err := errors.Join(win.FetchAndOp(window.Sum, 1, &old, 0, 3500), win.Unlock(ctx, 0)); err != nil {
			return err
		}
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		if me == 0 && win.Local()[3500] != int64((turn+1)*n) {
			return fmt.Errorf("counted %d in turn %d", win.Local()[3500], turn)
		}
		if err := w.Barrier(ctx); err != nil {
			return err
		}
	}
	return win.Close()
}

// tooLate is when a job under faults has to have ended.
const tooLate = time.Minute

// faulty runs restless under faults, and tells what is wrong with how it ended: each survivor's
// error has to be the failure of a rank, or what the fault was to it.
func faulty(t *testing.T, n int, seed uint64, plan sim.Faults, report func(sim.Event)) error {
	s := simulator(t, "ndr-2024", seed)
	require.NoError(t, s.Inject(plan...))
	s.Patience(tooLate)
	s.Trace(report)
	// One in three registers what it works with.
	var without scheduler.Scheme
	if seed%3 == 0 {
		without = scheduler.Pack
	}
	return unexpected(world.Simulate(t.Context(), s, n, func(ctx context.Context, w *world.World) error {
		return restless(ctx, w, window.Without(without))
	}))
}

// unexpected are the errors that no fault explains.
func unexpected(err error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var wrong []error
		for _, one := range joined.Unwrap() {
			wrong = append(wrong, unexpected(one))
		}
		return errors.Join(wrong...)
	}
	var peer *world.PeerError
	var deadlock *sim.DeadlockError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &deadlock):
		return err
	case errors.As(err, &peer), errors.Is(err, sim.ErrFault), errors.Is(err, verbs.ErrMemory):
		return nil
	}
	return err
}

// TestFaults has faults come to jobs: they end, with the right data or the right error.
func TestFaults(t *testing.T) {
	kinds := map[sim.FaultKind]int{}
	for _, n := range []int{2, 5} {
		for seed := *faultSeed; seed < *faultSeed+*faultPlans; seed++ {
			plan := sim.Plan(seed, n, 2*time.Millisecond)
			for _, f := range plan {
				kinds[f.Kind]++
			}
			if err := faulty(t, n, seed, plan, nil); err != nil {
				t.Errorf("%d ranks, -plan %d:\n%s%v", n, seed, plan, err)
			}
		}
	}
	t.Logf("faults: %v", kinds)
}

// The same seed and the same faults are the same run, to the last event.
func TestFaultsAgain(t *testing.T) {
	for seed := range uint64(30) {
		var sums [2]uint64
		for i := range sums {
			sum := fnv.New64a()
			require.NoError(t, faulty(t, 5, seed, sim.Plan(seed, 5, 2*time.Millisecond), func(e sim.Event) { _, _ = io.WriteString(sum, e.String()) }))
			sums[i] = sum.Sum64()
		}
		require.Equal(t, sums[0], sums[1], "seed %d", seed)
	}
}
