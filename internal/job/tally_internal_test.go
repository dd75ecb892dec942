package job

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Each rank hears how many ranks have sent it something, and whether anybody has sent
// anything, whatever the number of ranks, round after round, and whether a call is cut short
// or not.
func TestTally(t *testing.T) {
	for _, size := range []int{1, 2, 3, 4, 5, 7, 8, 13} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			runApart(t, size, func(ctx context.Context, w *World) error {
				m := w.NewMeeting(w.NewNumber(), make([]byte, MeetingBytes+TallyBytes(size)), MeetingBytes, nil)
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
					want, anything := 0, false
					for from := range sent {
						sent[from] = make([]bool, size)
						for to := range size {
							sent[from][to] = to != from && random.Float64() < density
							anything = anything || sent[from][to]
							if sent[from][to] && to == w.rank {
								want++
							}
						}
					}
					call := func(ctx context.Context) (int, bool, error) {
						return m.Tally(ctx, "Tally", 0, number+1, func(rank int) bool { return sent[w.rank][rank] })
					}
					if number%3 == uint32(w.rank)%3 {
						if _, _, err := call(ended); err != nil && !errors.Is(err, context.Canceled) {
							return err
						}
					}
					got, some, err := call(ctx)
					if err == nil && (got != want || some != anything) {
						err = fmt.Errorf("tally %d is %d, %v, want %d, %v", number+1, got, some, want, anything)
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

// A count that cannot be is refused, and so is one of who is not to tell it.
func TestTallyOutOfRange(t *testing.T) {
	const size = 5
	runApart(t, size, func(_ context.Context, w *World) error {
		if w.rank != 1 {
			return nil
		}
		m := w.NewMeeting(w.NewNumber(), make([]byte, MeetingBytes+TallyBytes(size)), MeetingBytes, nil)
		defer m.Close()
		from := &Link{world: w, rank: 0}
		for name, payload := range map[string][]byte{
			"half a count":             {0, 0, 0, 0},
			"of no rank":               {5, 0, 0, 0, 1, 0, 0, 0},
			"of a rank too far away":   {0, 0, 0, 0, 1, 0, 0, 0},
			"on its way by lower bits": {2, 0, 0, 0, 1, 0, 0, 0},
			"of more than all":         {1, 0, 0, 0, 6, 0, 0, 0},
		} {
			err := m.serve(from, &Message{Kind: kindRound, B: roundOfTally, X: 1}, payload)
			require.ErrorIs(t, err, ErrMessage, name)
		}
		for name, message := range map[string]Message{
			"of another round":   {Kind: kindRound, A: 1, B: roundOfTally, X: 1},
			"of no round":        {Kind: kindRound, A: 3, B: roundOfTally, X: 1},
			"counts of no tally": {Kind: kindCounts, X: 1},

			"an absence, of another round": {Kind: kindAbsent, A: 1, B: roundOfTally},
			"an absence of no rank":        {Kind: kindAbsent, B: roundOfTally, Y: size},
			"its own absence":              {Kind: kindAbsent, B: roundOfTally, Y: 1},
		} {
			require.ErrorIs(t, m.serve(from, &message, nil), ErrMessage, name)
		}
		counts := []byte{3, 0, 0, 0, 3, 0, 0, 0}
		require.NoError(t, m.serve(from, &Message{Kind: kindCounts, B: roundOfTally, X: 1}, counts))
		require.ErrorIs(t, m.serve(from, &Message{Kind: kindCounts, B: roundOfTally, X: 1}, counts), ErrMessage, "of more than all together")
		counts[4] = 2
		return m.serve(from, &Message{Kind: kindRound, B: roundOfTally, X: 1}, counts)
	})
}

// A round of another kind is none of a tally: what has to come is still waited for, and who
// tells it behind a tally keeps no rules.
func TestRoundOfNoTally(t *testing.T) {
	runApart(t, 2, func(ctx context.Context, w *World) error {
		if w.rank != 1 {
			return w.Barrier(ctx)
		}
		m := w.NewMeeting(w.NewNumber(), make([]byte, MeetingBytes+TallyBytes(2)), MeetingBytes, nil)
		defer m.Close()
		from, round := &Link{world: w, rank: 0}, &Message{Kind: kindRound, X: 1}
		require.NoError(t, m.serve(from, round, nil))
		soon, stop := context.WithTimeout(ctx, 20*time.Millisecond) // expires
		defer stop()
		tally := func(ctx context.Context) error {
			_, _, err := m.Tally(ctx, "Tally", 0, 1, func(int) bool { return false })
			return err
		}
		require.ErrorIs(t, tally(soon), context.DeadlineExceeded)
		require.ErrorIs(t, m.serve(from, round, nil), ErrMessage)
		round.B = roundOfTally
		require.NoError(t, m.serve(from, round, nil))
		return errors.Join(tally(ctx), w.Barrier(ctx))
	})
}

// A block that is too short for what its meeting keeps in it is none.
func TestBlockTooShort(t *testing.T) {
	w := quiet(t)[0]
	whole := make([]byte, MeetingBytes+TallyBytes(w.size))
	require.NotPanics(t, func() { w.NewMeeting(w.NewNumber(), whole, MeetingBytes, nil).Close() })
	require.Panics(t, func() { w.NewMeeting(w.NewNumber(), whole[:len(whole)-1], MeetingBytes, nil) })
	require.Panics(t, func() { w.NewMeeting(w.NewNumber(), whole[:MeetingBytes-1], NoTally, nil) })
}
