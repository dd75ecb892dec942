package world

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/bounds"
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

// elsewhere is a neighbor whose regions are all the same memory.
type elsewhere struct {
	verbs.Neighbor
	memory []byte
}

func (e elsewhere) Map(verbs.RemoteRegion) ([]byte, error) { return e.memory, nil }

// TestMisplacedBlock has a rank say that its block begins where the words in it are not aligned.
func TestMisplacedBlock(t *testing.T) {
	w := quiet(t)[0]
	memory := make([]byte, 2*lineBytes+blockLength(w.size))
	memory = memory[-bounds.Address(memory)%lineBytes:]
	defer w.neighbors[1].Store(nil)
	for at := range lineBytes {
		var n verbs.Neighbor = elsewhere{memory: memory[at:]}
		w.neighbors[1].Store(&n)
		_, err := w.blockOf(1)
		if at == 0 {
			require.NoError(t, err)
			continue
		}
		require.EqualError(t, err, "world: rank 1 has a block that begins at no multiple of 64 bytes")
	}
}
