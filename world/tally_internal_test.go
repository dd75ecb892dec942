package world

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each rank hears how many ranks have sent it something, and whether anybody has sent
// anything, whatever the number of ranks, round after round, and whether a call is cut short
// or not.
func TestTally(t *testing.T) {
	for _, size := range []int{1, 2, 3, 4, 5, 7, 8, 13} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			runApart(t, size, func(ctx context.Context, w *World) error {
				m := w.NewMeeting(w.NewNumber(), make([]byte, MeetingBytes), nil)
				defer m.Close()
				if err := w.Barrier(ctx); err != nil {
					return err
				}
				ended, end := context.WithCancel(ctx)
				end()
				for number := range uint32(40) {
					// All draw the same: who has sent to whom.
					random := rand.New(rand.NewPCG(1, uint64(number)))
					density := []float64{0, 0.05, 0.5, 1}[number%4]
					sent := make([][]bool, size)
					want, any := 0, false
					for from := range sent {
						sent[from] = make([]bool, size)
						for to := range size {
							sent[from][to] = to != from && random.Float64() < density
							any = any || sent[from][to]
							if sent[from][to] && to == w.rank {
								want++
							}
						}
					}
					call := func(ctx context.Context) (int, bool, error) {
						return m.Tally(ctx, "Tally", number+1, func(rank int) bool { return sent[w.rank][rank] })
					}
					if number%3 == uint32(w.rank)%3 {
						if _, _, err := call(ended); err != nil && !errors.Is(err, context.Canceled) {
							return err
						}
					}
					got, some, err := call(ctx)
					if err == nil && (got != want || some != any) {
						err = fmt.Errorf("tally %d is %d, %v, want %d, %v", number+1, got, some, want, any)
					}
					if err != nil {
						return err
					}
				}
				return w.Barrier(ctx)
			})
		})
	}
}

// A count that cannot be is refused.
func TestTallyOutOfRange(t *testing.T) {
	runApart(t, 5, func(_ context.Context, w *World) error {
		if w.rank != 1 {
			return nil
		}
		m := w.NewMeeting(w.NewNumber(), make([]byte, MeetingBytes), nil)
		defer m.Close()
		from := &Link{world: w, rank: 0}
		for name, payload := range map[string][]byte{
			"half a count":             {0, 0, 0, 0},
			"of a rank too far away":   {4, 0, 0, 0, 1, 0, 0, 0},
			"on its way by lower bits": {1, 0, 0, 0, 1, 0, 0, 0},
			"of more than all":         {0, 0, 0, 0, 6, 0, 0, 0},
		} {
			err := m.serve(from, &Message{Kind: kindRound, X: 1}, payload)
			require.ErrorIs(t, err, ErrMessage, name)
		}
		return m.serve(from, &Message{Kind: kindRound, X: 1}, []byte{2, 0, 0, 0, 5, 0, 0, 0})
	})
}
