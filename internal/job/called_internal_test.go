package job

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/testsize"
)

// Two calls that differ are named with their ranks, the lower one first, whoever finds them.
func TestCalled(t *testing.T) {
	const most = 1<<rankBits - 1
	a, b, c := calledBy(1, 7), calledBy(2, most), calledBy(1, 0)
	require.Equal(t, called(0), calledBy(0, 7))
	require.Equal(t, a, a.and(c))
	require.False(t, a.and(c).differ())
	require.Equal(t, a.and(b), b.and(a))
	require.True(t, a.and(b).differ())
	require.Equal(t, a.and(b), a.and(b).and(c))
	require.Equal(t, a.and(b), c.and(a.and(b)))
	require.NoError(t, compared("Meet", 3, a))
	err := compared("Meet", 3, b.and(a))
	require.Equal(t, &MeetingError{Op: "Meet", Number: 3, Ranks: [2]int{7, most}, Calls: [2]uint8{1, 2}}, err)
	require.ErrorIs(t, err, ErrMismatch)
}

// differs looks whether an error names the call of a rank that has made another one than the others.
func differs(err error, odd int, calls func(rank int) uint8) error {
	var met *MeetingError
	if !errors.As(err, &met) {
		return fmt.Errorf("error is %v, want a *MeetingError", err)
	}
	low, high := met.Ranks[0], met.Ranks[1]
	if low >= high || low != odd && high != odd || met.Calls != [2]uint8{calls(low), calls(high)} {
		return fmt.Errorf("rank %d was at odds, error is %v", odd, err)
	}
	return nil
}

// Ranks of which one comes to a meeting by another call than the others all hear of that, wherever they meet, also where calls
// are cut short; and of none when all come by the same, be it another each time.
func TestMeetingTellsCallsApart(t *testing.T) {
	for _, n := range []int{2, 3, 4, 6, 9, 11} {
		for i, s := range everySetting(n) {
			places := []int{0, n / 2, n - 1}
			for _, k := range testsize.Turns(n+i, len(places), 1) {
				odd := places[k]
				t.Run(fmt.Sprintf("%d ranks, %v, rank %d", n, s, odd), func(t *testing.T) {
					s.run(t, n, func(ctx context.Context, w *World, m *Meeting) error {
						ended, end := context.WithCancel(ctx)
						end()
						meet := func(call uint8, number uint32) error {
							if w.rank%3 == int(number%3) {
								if err := m.Meet(ended, "Meet", call, number); !errors.Is(err, context.Canceled) {
									return err
								}
							}
							return m.Meet(ctx, "Meet", call, number)
						}
						for number := uint32(2); number < 12; number++ {
							if err := meet(uint8(1+number/2%3), number); err != nil {
								return err
							}
						}
						calls := func(rank int) uint8 {
							if rank == odd {
								return MostCalls - 1
							}
							return 1
						}
						err := differs(meet(calls(w.rank), 12), odd, calls)
						return errors.Join(err, w.Barrier(ctx))
					})
				})
			}
		}
	}
}

// So do ranks that tally, those of one host and those of others.
func TestTallyTellsCallsApart(t *testing.T) {
	for i, name := range slices.Sorted(maps.Keys(placements)) {
		of := placements[name]
		for odd := range of {
			if !testsize.Turn(i+odd, 3) {
				continue
			}
			t.Run(fmt.Sprintf("%s, rank %d", name, odd), func(t *testing.T) {
				h := newHosted(of)
				runApart(t, len(of), func(ctx context.Context, w *World) error {
					m, err := h.meeting(ctx, w)
					if err != nil {
						return err
					}
					defer m.Close()
					ended, end := context.WithCancel(ctx)
					end()
					tally := func(call uint8, number uint32) error {
						sent := func(rank int) bool { return rank != w.rank && rank%2 == int(number%2) }
						if w.rank%3 == int(number%3) {
							if _, _, err := m.Tally(ended, "Tally", call, number, sent); !errors.Is(err, context.Canceled) {
								return err
							}
						}
						_, _, err := m.Tally(ctx, "Tally", call, number, sent)
						return err
					}
					for number := uint32(1); number < 8; number++ {
						if err := errors.Join(tally(uint8(1+number/2%3), number), m.EndTally(ctx, "EndTally")); err != nil {
							return err
						}
					}
					calls := func(rank int) uint8 {
						if rank == odd {
							return 2
						}
						return 1
					}
					err = differs(tally(calls(w.rank), 8), odd, calls)
					return errors.Join(err, w.Barrier(ctx))
				})
			})
		}
	}
}
