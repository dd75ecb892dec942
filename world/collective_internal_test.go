package world

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// A call that is cut short leaves what its links may still send where it is when it is made again. The results of these calls
// are not looked at: what would be sent is written over in between.
func TestCutShortLeavesAlone(t *testing.T) {
	const n, short, long = 3, 8, 1 << 17
	type call struct {
		name   string
		length int
		// exchanges are at least over when a rank looks, and sent is where in the round's memory what the next one sends begins.
		exchanges, sent int
		// looks is the rank that does, and early one that takes part before it has, if it is another one.
		looks, early int
		make         func(ctx context.Context, w *World, in, out []uint64) error
	}
	for _, c := range []call{
		{"AllToAll", short, 1, n * short, 0, 2, AllToAll[uint64]},
		{"AllGather", short, 0, 0, 0, 0, func(ctx context.Context, w *World, in, out []uint64) error {
			return AllGather(ctx, w, in[:short], out)
		}},
		{"Gather", short, 0, 0, 1, 1, func(ctx context.Context, w *World, in, out []uint64) error {
			return Gather(ctx, w, 1, in[:short], out)
		}},
		{"Scatter", long, 0, 0, 1, 1, func(ctx context.Context, w *World, in, out []uint64) error {
			return Scatter(ctx, w, 1, in, out[:long])
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			ended, end := context.WithCancel(t.Context())
			end()
			looked := make(chan struct{})
			look := sync.OnceFunc(func() { close(looked) })
			require.NoError(t, Run(t.Context(), n, func(ctx context.Context, w *World) error {
				in, out, r := make([]uint64, n*c.length), make([]uint64, n*c.length), &w.round
				switch w.Rank() {
				case c.looks:
					defer look()
				case c.early:
					return c.make(ctx, w, in, out)
				default:
					<-looked
					return c.make(ctx, w, in, out)
				}
				cut := func() {
					err := c.make(ended, w, in, out)
					require.ErrorIs(t, err, context.Canceled)
				}
				for cut(); r.done < c.exchanges; cut() {
				}
				away, mark := r.memory[c.sent:][:c.length], slices.Repeat([]uint64{1<<64 - 1}, c.length)
				copy(away, mark)
				cut()
				require.Equal(t, mark, away)
				look()
				return c.make(ctx, w, in, out)
			}, WithAlgorithm(Short)))
		})
	}
}
