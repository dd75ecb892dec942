package job

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/progress"
)

// A rank that comes while another looks, and then leaves, is not one that has left without coming.
func TestAbandonerHasCome(t *testing.T) {
	require.NoError(t, Run(t.Context(), 2, func(ctx context.Context, w *World) error {
		team, err := w.Split(ctx, 0, 0)
		if err != nil || w.rank != 0 {
			return err
		}
		if _, err := team.Neighbor(1); err != nil {
			return err
		}
		m := team.barrier
		theirs := make([]byte, MeetingBytes)
		looks := 0
		m.blocks[1].Store(nil)
		other := m.other
		m.other = func(int) ([]byte, error) {
			if looks++; looks == 1 {
				return nil, errors.New("it cannot be looked at yet")
			}
			b := meetingBlockOver(theirs)
			b.context().Store(team.context)
			b.come().Store(team.number + 1)
			b.left().Store(2)
			return theirs, nil
		}
		rank, left := m.abandoner()
		m.other = other
		m.blocks[1].Store(nil)
		if left {
			return fmt.Errorf("rank %d has come, and is said to have left before", rank)
		}
		return nil
	}))
}

// What has come by the time that a wait for all is known to be in vain ends it.
func TestVainLooksOnceMore(t *testing.T) {
	for name, vain := range map[string]func(b *meetingBlock, l *ledger){
		"a rank shrinks":  func(_ *meetingBlock, l *ledger) { l.shrinks.Store(uint64(recordShrinks)) },
		"a rank has left": func(b *meetingBlock, _ *ledger) { b.left().Store(2) },
	} {
		t.Run(name, func(t *testing.T) {
			done := make(chan struct{})
			require.NoError(t, Run(t.Context(), 2, func(ctx context.Context, w *World) error {
				team, err := w.Split(ctx, 0, 0)
				if err != nil {
					return err
				}
				if w.rank != 0 {
					return receive(ctx, done)
				}
				defer close(done)
				m := team.barrier
				b, err := m.block("Barrier", 1)
				if err != nil {
					return err
				}
				l, err := team.ledgerOf(1)
				if err != nil {
					return err
				}
				word, number := m.own.released(), team.number+1
				before := word.Load()
				vain(b, l)
				team.round.signature = signature{call: callBarrier, number: team.calls.Load() + 1}
				wait := team.NewWaiter()
				defer wait.Finish()
				for !wait.Long() || !wait.Quiet() {
					if err := wait.Pause(ctx); err != nil {
						return err
					}
				}
				// Only a poll of vain runs it.
				w.Exclude(func() { w.Retry(func() bool { word.Store(number); return true }) })
				err = m.vain("Barrier", word, number, parent(0), &wait)
				word.Store(before)
				b.left().Store(0)
				l.shrinks.Store(0)
				return err
			}, sleeping(progress.FirstSleep)))
		})
	}
}
