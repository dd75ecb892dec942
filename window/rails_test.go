package window_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/internal/simtest"
	"github.com/onesided/rma/internal/tuning"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// passLong has ranks put much to the next, and get it back.
func passLong(ctx context.Context, w *world.World) error {
	const elements, rounds = 1 << 17, 6
	return scripted(func(s *script) {
		win := allocate[int64](s, elements)
		mine, back := make([]int64, elements), make([]int64, elements)
		next, before := (w.Rank()+1)%w.Size(), (w.Rank()+w.Size()-1)%w.Size()
		for round := range int64(rounds) {
			for i := range mine {
				mine[i] = round<<40 | int64(w.Rank())<<32 | int64(i)
			}
			s.OK(win.Fence(s.Ctx))
			s.OK(win.Put(mine, next, 0))
			s.OK(win.Fence(s.Ctx))
			for i, v := range win.Local() {
				if want := round<<40 | int64(before)<<32 | int64(i); v != want {
					s.Check(false, "round %d: element %d is %#x, want %#x", round, i, v, want)
					break
				}
			}
			s.OK(win.Get(back, next, 0))
			s.OK(win.Fence(s.Ctx, window.NoSucceed))
			for i := range back {
				s.Check(back[i] == mine[i], "round %d: element %d came back as %#x", round, i, back[i])
			}
		}
		s.OK(win.Close())
	})(ctx, w)
}

// Ranks that have several cards, or addresses, do with all of them what they do with one.
func TestRails(t *testing.T) {
	busy.Acquire(t)
	for _, options := range [][]world.Option{nil, {job.Tune(func(t *tuning.Tuning) { t.NoStriping = true })}} {
		require.NoError(t, world.Run(t.Context(), 3, passLong, append(options, world.WithDevice("tcp"), world.WithAddress("127.0.0.1,127.0.0.1"))...))
		require.NoError(t, world.Simulate(t.Context(), simtest.New(t, "ndr-2024", 1), 3, passLong, append(options, job.Tune(func(t *tuning.Tuning) { t.Rails = 2 }))...))
	}
}
