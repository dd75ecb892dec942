package job

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/bounds"
	"github.com/onesided/rma/verbs"
)

// Words in shared memory that no rank writes which keeps the rules: others can write to each.

// TestDamagedVerdict has a rank's memory say that the rank itself has failed, or one that there is not. That is an
// error of all ranks, but nobody's failure.
func TestDamagedVerdict(t *testing.T) {
	const failed, shrinks = "it says so", ""
	for _, v := range []verdict{
		{leaver: 0, text: failed}, {leaver: 7, text: failed}, {leaver: -3, text: failed},
		{leaver: 1, shrinks: true, text: failed}, {leaver: 0, shrinks: true, text: shrinks}, {leaver: 7, shrinks: true, text: shrinks}, {leaver: -1, shrinks: true, text: shrinks}, {leaver: -3, shrinks: true, text: shrinks},
	} {
		require.NoError(t, Run(t.Context(), 2, func(ctx context.Context, w *World) error {
			if w.rank == 0 {
				v := v
				v.number = w.calls.Load() + 1
				assert.True(t, w.ledger.judge(v))
			}
			err := w.Barrier(ctx)
			assert.ErrorIs(t, err, ErrMismatch, "%+v", v)
			assert.ErrorContains(t, err, "the memory of rank 0 says that rank", "%+v", v)
			assert.Zero(t, w.FailureCount())
			return nil
		}))
	}
}

// TestDamagedVerdictTold has a rank tell verdicts that no rank tells.
func TestDamagedVerdictTold(t *testing.T) {
	w := quiet(t)[0]
	l := &Link{world: w, rank: 1}
	for _, c := range []struct {
		m    Message
		text string
	}{
		{Message{X: 1 << 32, Y: 2}, ""},
		{Message{X: 1, Y: 3}, ""},
		{Message{X: 1, Y: 1}, ""},
		{Message{X: 1, Y: 2, A: 2}, ""},
		{Message{X: 1, Y: 0, A: 1}, ""},
		{Message{X: 1, Y: 2, A: 1}, "text"},
		// This rank has not called Shrink.
		{Message{X: 1, Y: 1, A: 1}, ""},
	} {
		c.m.Kind = kindVerdict
		require.ErrorIs(t, l.serve(&c.m, []byte(c.text)), ErrMessage, "%+v", c)
		require.Nil(t, w.ledger.heard(1), "%+v", c)
	}
	w.shrinking.begun.Store(true)
	require.NoError(t, l.serve(&Message{Kind: kindVerdict, X: 1, Y: 1, A: 1}, nil))
	require.Equal(t, &verdict{1, 0, true, ""}, w.ledger.heard(1))
}

// TestDamagedShrinks has the word for a rank that shrinks say nothing that a rank says.
func TestDamagedShrinks(t *testing.T) {
	var l ledger
	l.records[1].store(&signature{call: callBarrier, number: 1})
	for _, c := range []struct {
		word            uint64
		called, waiting recordState
	}{
		{0, recordHeld, recordNone},
		{uint64(recordShrinks), recordHeld, recordShrinks},
		{1<<32 | uint64(recordGivenUp), recordGivenUp, recordGivenUp},
		{2<<32 | uint64(recordGivenUp), recordHeld, recordGivenUp},
		{uint64(recordHeld), recordHeld, recordNone},
		{uint64(recordPassed), recordHeld, recordNone},
		{uint64(recordStates), recordHeld, recordNone},
		{1<<8 | uint64(recordShrinks), recordHeld, recordNone},
	} {
		l.shrinks.Store(c.word)
		_, called := l.recordAt(1)
		_, waiting := l.recordAt(2)
		require.Equal(t, []recordState{c.called, c.waiting}, []recordState{called, waiting}, "%#x", c.word)
	}
}

// TestDamagedLeaver has the words for ranks that have left name none, or the rank that looks.
func TestDamagedLeaver(t *testing.T) {
	// Another rank would believe a word that names rank 0: it comes to the Barrier when the words are as they were.
	restored := make(chan struct{})
	require.NoError(t, Run(t.Context(), 3, func(ctx context.Context, w *World) error {
		if w.rank != 0 {
			<-restored
			return w.Barrier(ctx)
		}
		err := damageLeaver(t, w.barrier)
		close(restored)
		if err != nil {
			return err
		}
		return w.Barrier(ctx)
	}))
}

// damageLeaver writes and reads the words of rank 0 and rank 1 for ranks that have left, as rank 0.
func damageLeaver(t *testing.T, m *Meeting) error {
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
	return nil
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
