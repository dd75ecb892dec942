package job

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/simtest"
	"github.com/onesided/rma/internal/tuning"
	"github.com/onesided/rma/scheduler/transfer"
	"github.com/onesided/rma/verbs"
)

// What is registered is not registered again for each operation.
func TestRegistersOnce(t *testing.T) {
	profile := simtest.Profile(t, "pcie-2005")
	for _, ahead := range []bool{false, true} {
		s := simtest.With(t, profile, 1)
		var places [2]Places
		require.NoError(t, Simulate(t.Context(), s, 2, func(ctx context.Context, w *World) error {
			memory := make([]byte, 1<<16)
			mine, err := w.Register(memory, verbs.LocalWrite|verbs.RemoteWrite)
			if err != nil {
				return err
			}
			places[w.rank] = mine.Remote()
			if !ahead {
				memory = make([]byte, 1<<16)
			}
			if err := w.Barrier(ctx); err != nil || w.rank == 1 {
				return errors.Join(err, w.Barrier(ctx))
			}
			l, err := w.Link(1)
			if err != nil {
				return err
			}
			begun := w.Now()
			if err := l.Write(ctx, memory, w.Place(1, &places[1]), 0); err != nil {
				return err
			}
			if took := w.Now() - begun; took < profile.Register != ahead {
				t.Errorf("registered ahead %v: a write took the processor %v, a registration takes %v", ahead, took, profile.Register)
			}
			return errors.Join(l.Settle(ctx), w.Barrier(ctx))
		}, movedBy(transfer.Of(transfer.Register))))
	}
}

// What is short goes along with the request, whether it is registered or not, and its memory is
// registered for neither unless there is no going along.
func TestInline(t *testing.T) {
	profile := simtest.Profile(t, "ndr-2024")
	times := make(map[bool]time.Duration)
	for _, inline := range []bool{true, false} {
		options := []Option{movedBy(transfer.Of(transfer.Register))}
		if !inline {
			options = append(options, Tune(func(t *tuning.Tuning) { t.NoInline = true }))
		}
		for _, ahead := range []bool{true, false} {
			s := simtest.With(t, profile, 1)
			var places [2]Places
			var took time.Duration
			require.NoError(t, Simulate(t.Context(), s, 2, func(ctx context.Context, w *World) error {
				memory := make([]byte, profile.MaxInline)
				mine, err := w.Register(memory, verbs.LocalWrite|verbs.RemoteWrite)
				if err != nil {
					return err
				}
				places[w.rank] = mine.Remote()
				if err := w.Barrier(ctx); err != nil {
					return err
				}
				if w.rank == 1 {
					err := w.Barrier(ctx)
					for i, b := range memory {
						require.Equal(t, byte(i+1), b)
					}
					return err
				}
				if !ahead {
					memory = make([]byte, profile.MaxInline)
				}
				for i := range memory {
					memory[i] = byte(i + 1)
				}
				l, err := w.Link(1)
				if err != nil {
					return err
				}
				begun := w.Now()
				err = errors.Join(l.Write(ctx, memory, w.Place(1, &places[1]), 0), l.Flush(ctx))
				took = w.Now() - begun
				return errors.Join(err, w.Barrier(ctx))
			}, options...))
			require.Equal(t, !inline && !ahead, took > profile.Register, "%v", took)
			if ahead {
				times[inline] = took
			}
		}
	}
	require.Less(t, times[true], times[false])
}
