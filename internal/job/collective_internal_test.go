package job

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/tuning"
)

// A call that is cut short leaves what its links may still send where it is when it is made again. The results of these calls
// are not looked at: what would be sent is written over in between.
func TestCutShortLeavesAlone(t *testing.T) {
	const n, short, long = 3, 8, 1 << 17
	inMemory := func(w *World, _ []uint64) []uint64 { return w.round.memory[:short] }
	for name, c := range map[string]struct {
		algorithm tuning.Algorithm
		length    int
		// The rank looks checks the buffer after sent exchanges: the next exchange sends that buffer.
		looks, exchanges int
		sent             func(w *World, out []uint64) []uint64
		// early has the ranks that take part before that, each with the number of exchanges after which it stops.
		early map[int]int
		make  func(ctx context.Context, w *World, in, out []uint64) error
	}{
		"AllToAll": {tuning.Short, short, 0, 1, func(w *World, _ []uint64) []uint64 { return w.round.memory[n*short:][:short] }, map[int]int{2: 0}, AllToAll[uint64]},
		"AllGather": {tuning.Short, short, 0, 0, inMemory, nil, func(ctx context.Context, w *World, in, out []uint64) error {
			return AllGather(ctx, w, in[:short], out)
		}},
		"Gather": {tuning.Short, short, 1, 0, inMemory, nil, func(ctx context.Context, w *World, in, out []uint64) error {
			return Gather(ctx, w, 1, in[:short], out)
		}},
		"Scatter": {tuning.Short, long, 1, 0, inMemory, nil, func(ctx context.Context, w *World, in, out []uint64) error {
			return Scatter(ctx, w, 1, in, out[:long])
		}},
		"AllReduce": {tuning.Plain, long, 0, 2, func(_ *World, out []uint64) []uint64 { return out }, map[int]int{1: 1, 2: 1}, func(ctx context.Context, w *World, in, out []uint64) error {
			return AllReduceOp(ctx, w, in, out, Sum)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			ended, end := context.WithCancel(t.Context())
			end()
			// A job in which all was over before a rank could look is followed by another one.
			for seen := false; !seen; {
				looked := make(chan struct{})
				look := sync.OnceFunc(func() { close(looked) })
				require.NoError(t, Run(t.Context(), n, func(ctx context.Context, w *World) error {
					in, out := make([]uint64, n*c.length), make([]uint64, n*c.length)
					// cut makes the call with a context that has ended. It may have been about to end well.
					cut := func() (over bool) {
						err := c.make(ended, w, in, out)
						if err != nil {
							require.ErrorIs(t, err, context.Canceled)
						}
						return err == nil
					}
					until := func(exchanges int) (over bool) {
						for over = cut(); !over && w.round.done < exchanges; over = cut() {
						}
						return over
					}
					over := false
					if w.Rank() == c.looks {
						defer look()
						if over = until(c.exchanges); !over {
							sent := c.sent(w, out)
							mark := slices.Repeat([]uint64{1<<64 - 1}, len(sent))
							copy(sent, mark)
							over = cut()
							require.True(t, slices.Equal(mark, sent), "what is sent was written over")
							seen = true
						}
						look()
					} else {
						if exchanges, early := c.early[w.Rank()]; early {
							over = until(exchanges)
						}
						<-looked
					}
					if over {
						return nil
					}
					return c.make(ctx, w, in, out)
				}, Tune(func(t *tuning.Tuning) { t.Algorithm = c.algorithm })))
			}
		})
	}
}
