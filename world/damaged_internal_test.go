package world

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Words in shared memory that no rank writes which keeps the rules: others can write to each.

// TestDamagedVerdict has a rank's memory say that the rank itself has failed, or one that there is not. That is an
// error of all ranks, but nobody's failure.
func TestDamagedVerdict(t *testing.T) {
	for _, leaver := range []int{0, 7, -3} {
		require.NoError(t, Run(t.Context(), 2, func(ctx context.Context, w *World) error {
			if w.rank == 0 {
				assert.True(t, w.ledger.judge(w.calls.Load()+1, leaver, "it says so"))
			}
			err := w.Barrier(ctx)
			assert.ErrorIs(t, err, ErrMismatch, "of rank %d", leaver)
			assert.ErrorContains(t, err, "the memory of rank 0 says that rank")
			assert.Zero(t, w.Failures())
			return nil
		}))
	}
}

// TestDamagedLeaver has the words for ranks that have left name none, or the rank that looks.
func TestDamagedLeaver(t *testing.T) {
	require.NoError(t, Run(t.Context(), 3, func(ctx context.Context, w *World) error {
		if w.rank == 0 {
			m := w.barrier
			other, err := m.block("Barrier", 1)
			if err != nil {
				return err
			}
			for _, word := range []uint32{1, 4, 77, 1 << 31, 1<<32 - 1} {
				m.own.leaver().Store(word)
				_, left := m.left(-1)
				assert.False(t, left, "leaver %#x", word)
				other.left().Store(word)
				_, left = m.left(1)
				assert.False(t, left, "left %#x", word)
				var absent atomic.Uint64
				absent.Store(uint64(word))
				_, missed := m.missed(&absent, 1)
				assert.False(t, missed, "absent %#x", word)
			}
			other.left().Store(2)
			leaver, left := m.left(1)
			assert.True(t, left)
			assert.Equal(t, 1, leaver)
			m.own.leaver().Store(0)
			other.left().Store(0)
		}
		return w.Barrier(ctx)
	}))
}

// TestDamagedNote has a rank say that it has read notes which this one has not sent.
func TestDamagedNote(t *testing.T) {
	var told error
	_ = Run(t.Context(), 2, func(ctx context.Context, w *World) error {
		if err := w.Barrier(ctx); err != nil || w.rank != 0 {
			return err
		}
		c, err := w.round.correspond(ctx, 1)
		if err != nil {
			return err
		}
		assert.NoError(t, w.round.learn(c, 1, c.known))
		told = w.round.learn(c, 1, c.sent+1)
		return told
	})
	require.ErrorIs(t, told, ErrMessage)
	require.ErrorContains(t, told, "it has read note")
	var failed *PeerError
	require.ErrorAs(t, told, &failed)
	require.Equal(t, 1, failed.Rank)
}
