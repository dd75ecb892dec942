package job

import (
	"context"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/tuning"
)

// Notes come in order and whole, beside messages that are too long for them, also where numbers wrap and one rank is
// slow: another is so many notes ahead of it and no more.
func TestNotes(t *testing.T) {
	const before = 1<<32 - 9
	require.NoError(t, Run(t.Context(), 3, func(ctx context.Context, w *World) error {
		for other := range w.size {
			if other == w.rank {
				continue
			}
			r := &w.round
			c, err := r.correspond(ctx, other)
			require.NoError(t, err)
			c.sent, c.known, c.read, c.told = before, before, before, before
			for number := uint32(before - noteSlots + 1); number != before+1; number++ {
				c.mine.slots[number%noteSlots].number.Store(number)
			}
			c.mine.read.Store(before)
		}
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		lengths := rand.New(rand.NewPCG(3, 5))
		for i := range 300 {
			if i%3 == w.rank {
				for range 50 * (i % 7) {
					runtime.Gosched()
				}
			}
			root, data := i/20%3, make([]byte, lengths.IntN(2*mostInNote))
			for j := range data {
				if w.rank == root {
					data[j] = byte(i + j)
				}
			}
			if err := Broadcast(ctx, w, root, data); err != nil {
				return err
			}
			for j := range data {
				require.Equal(t, byte(i+j), data[j])
			}
			sums := []int64{int64(i), int64(w.rank)}
			if err := AllReduceOp(ctx, w, sums, sums, Sum); err != nil {
				return err
			}
			require.Equal(t, []int64{3 * int64(i), 3}, sums)
		}
		return nil
	}, Tune(func(t *tuning.Tuning) { t.Algorithm = tuning.Plain })))
}

// Who has noteSlots notes at a rank that reads none goes on when it has read one.
func TestNotesWait(t *testing.T) {
	require.NoError(t, Run(t.Context(), 2, func(ctx context.Context, w *World) error {
		if w.rank == 1 {
			theirs, err := w.ledgerOf(0)
			require.NoError(t, err)
			for uint32(theirs.records[(noteSlots+1)%ledgerDepth].call.Load()>>32) != noteSlots+1 {
				runtime.Gosched()
			}
		}
		for i := range 3 * noteSlots {
			data := []int{i}
			if err := Broadcast(ctx, w, 0, data); err != nil {
				return err
			}
			require.Equal(t, i, data[0])
			if w.rank == 0 && i == noteSlots-1 {
				require.Zero(t, w.notes[1].known)
			}
			if w.rank == 0 && i == noteSlots {
				require.NotZero(t, w.notes[1].known)
			}
		}
		return nil
	}, Tune(func(t *tuning.Tuning) { t.Algorithm = tuning.Plain })))
}
