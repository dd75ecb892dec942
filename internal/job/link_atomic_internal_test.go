package job

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/simtest"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/sim"
)

// onCards calls a body for ranks with cards: goroutines, and in virtual time.
func onCards(t *testing.T, n int, body func(ctx context.Context, w *World) error) {
	t.Run("goroutines", func(t *testing.T) { runApart(t, n, body) })
	t.Run("simulated", func(t *testing.T) {
		require.NoError(t, Simulate(t.Context(), simtest.New(t, "ndr-2024", 1), n, body))
	})
}

// words has every rank register words, and tells where all find theirs.
func words(ctx context.Context, w *World, memory []byte) (*Region, []verbs.RemoteRegion, error) {
	region, err := w.Register(memory, verbs.LocalWrite|verbs.RemoteRead|verbs.RemoteWrite|verbs.RemoteAtomic)
	if err != nil {
		return nil, nil, err
	}
	places := make([]Places, w.size)
	if err := AllGather(ctx, w, []Places{region.Remote()}, places); err != nil {
		return nil, nil, err
	}
	at := make([]verbs.RemoteRegion, w.size)
	for rank := range places {
		at[rank] = places[rank][networkCard]
	}
	return region, at, nil
}

// TestLinkAtomics has all ranks count on all ranks, themselves included, more often than a link
// holds at once: every number is counted once, in order, and a message that waits for reads
// comes behind all.
func TestLinkAtomics(t *testing.T) {
	const n, count = 3, 500
	onCards(t, n, func(ctx context.Context, w *World) error {
		memory, err := w.Device().AllocateMemory(16)
		if err != nil {
			return err
		}
		region, at, err := words(ctx, w, memory)
		if err != nil {
			return err
		}
		for target := range n {
			l, err := w.CardLink(target)
			if err != nil {
				return err
			}
			results := make([]uint64, count)
			for i := range results {
				if err := l.FetchAdd(ctx, 1, &results[i], at[target], 8); err != nil {
					return err
				}
			}
			if err := l.FetchAdd(ctx, 1<<32, nil, at[target], 8); err != nil {
				return err
			}
			if err := l.Settle(ctx); err != nil {
				return err
			}
			for i := 1; i < count; i++ {
				if uint32(results[i]) <= uint32(results[i-1]) {
					return fmt.Errorf("rank %d counts %d on rank %d behind %d", w.rank, results[i], target, results[i-1])
				}
			}
		}
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		l, err := w.CardLink(w.rank)
		if err != nil {
			return err
		}
		var counted, seen uint64
		want := uint64(n<<32 + n*count)
		if err := errors.Join(l.CompareSwap(ctx, want, 7, &counted, at[w.rank], 8), l.CompareSwap(ctx, want, 8, &seen, at[w.rank], 8), l.Flush(ctx)); err != nil {
			return err
		}
		if counted != want || seen != 7 {
			return fmt.Errorf("rank %d was counted to %#x, not %#x, and then was %d", w.rank, counted, want, seen)
		}
		if again, err := w.CardLink(w.rank); again != l || err != nil {
			return fmt.Errorf("another link: %w", err)
		}
		return errors.Join(w.Barrier(ctx), region.Deregister(), w.Device().FreeMemory(memory))
	})
}

// TestAtomicRefused: a region that grants no atomics ends the link, and nobody but the rank whose
// fault it is fails.
func TestAtomicRefused(t *testing.T) {
	onCards(t, 1, func(ctx context.Context, w *World) error {
		region, err := w.Register(make([]byte, 8), verbs.LocalWrite|verbs.RemoteRead)
		if err != nil {
			return err
		}
		l, err := w.CardLink(w.rank)
		if err != nil {
			return err
		}
		result := uint64(5)
		err = l.FetchAdd(ctx, 1, &result, region.Remote()[networkCard], 0)
		if err == nil {
			err = l.Settle(ctx)
		}
		var failed *PeerError
		if !errors.As(err, &failed) || failed.Rank != 0 || result != 5 || w.FailureCount() != 0 {
			return fmt.Errorf("got %w, result %d, %d failures", err, result, w.FailureCount())
		}
		return region.Deregister()
	})
}

// TestCardLinkNeedsCard: ranks that share memory have no network card.
func TestCardLinkNeedsCard(t *testing.T) {
	require.NoError(t, Run(t.Context(), 2, func(_ context.Context, w *World) error {
		own, coherent := w.CardAtomics()
		_, err := w.CardLink(w.rank)
		var unable *verbs.CapabilityError
		if own || coherent || !errors.As(err, &unable) {
			return fmt.Errorf("own %v, coherent %v, %w", own, coherent, err)
		}
		return nil
	}))
}

// TestAtomicOfDead: who waits for a card whose rank is killed hears of that.
func TestAtomicOfDead(t *testing.T) {
	s := simtest.New(t, "ndr-2024", 1)
	faults, err := sim.ParseFaults("at 2ms kill rank 1")
	require.NoError(t, err)
	require.NoError(t, s.Inject(faults...))
	heard := false
	err = Simulate(t.Context(), s, 2, func(ctx context.Context, w *World) error {
		_, at, err := words(ctx, w, make([]byte, 64))
		if err != nil {
			return err
		}
		if w.rank == 1 {
			w.Compute(time.Second)
			return nil
		}
		l, err := w.Link(1)
		if err != nil {
			return err
		}
		var result uint64
		for err == nil {
			if err = l.FetchAdd(ctx, 1, &result, at[1], 0); err == nil {
				err = l.Settle(ctx)
			}
		}
		var failed *PeerError
		if heard = errors.As(err, &failed) && failed.Rank == 1; !heard {
			return err
		}
		return nil
	})
	require.ErrorIs(t, err, sim.ErrFault)
	require.True(t, heard)
}
