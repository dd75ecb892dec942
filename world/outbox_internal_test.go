package world

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/verbs"
)

// An overflown queue pair tells of one of its requests only.
type overflown struct{ verbs.QueuePair }

func (overflown) Err() error { return verbs.ErrQueueFull }

// Where a queue overflows the letters whose completions are lost are not lost for other
// ranks, and one that completes all the same counts once.
func TestOutboxAfterOverflow(t *testing.T) {
	require.NoError(t, Run(t.Context(), 2, func(_ context.Context, w *World) error {
		if w.rank == 1 {
			return nil
		}
		o := &w.post
		o.mu.Lock()
		defer o.mu.Unlock()
		require.Len(t, o.free, outboxLetters)
		box := o.box(1)
		box.out = overflown{}
		box.posted, o.free = append(box.posted, o.free[:3]...), o.free[3:]
		box.sent = len(box.posted)
		first, last := box.posted[0], box.posted[2]
		for _, slot := range []int{first, last} {
			o.completed(box, &verbs.Completion{ID: sentLetter | uint64(slot), Status: verbs.StatusFlushed})
			require.Len(t, o.free, outboxLetters)
			require.Zero(t, box.sent)
		}
		require.ErrorIs(t, box.err, verbs.ErrQueueFull)
		return nil
	}))
}
