package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/examples/globalarray"
	"github.com/onesided/rma/examples/internal/kernel"
	"github.com/onesided/rma/examples/internal/kernel/kerneltest"
	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

func TestMain(m *testing.M) { jobtest.Main(m) }

func TestJump(t *testing.T) {
	value := uint64(1)
	for n := range uint64(1000) {
		require.Equal(t, value, jump(n), "number %d", n)
		value = next(value)
	}
	// The sequence has this period.
	const period = 1317624576693539401
	require.EqualValues(t, 1, jump(period))
	require.Equal(t, jump(12345), jump(period+12345))
}

func TestParts(t *testing.T) {
	for _, ranks := range []int{1, 2, 3, 7} {
		end := 0
		for rank := range ranks {
			first, last := part(100, rank, ranks)
			require.Equal(t, end, first)
			require.InDelta(t, 100/ranks, last-first, 1)
			end = last
		}
		require.Equal(t, 100, end)
	}
}

// small runs the kernel on a small table.
func small(ctx context.Context, r *kernel.Rank, atomics bool) error {
	j := job{log: 14, ahead: mostAhead, atomics: atomics}
	return j.run(ctx, r)
}

var (
	withAtomics = kerneltest.Register("with atomics", func(ctx context.Context, r *kernel.Rank) error { return small(ctx, r, true) })
	// Ranks that share a small table lose updates. If one of them is descheduled between its reads and its writes, they
	// lose more than the rules allow. A single rank loses none.
	without = kerneltest.Register("without", func(ctx context.Context, r *kernel.Rank) error {
		err := small(ctx, r, false)
		if r.Size() > 1 && errors.Is(err, kernel.ErrVerification) {
			return nil
		}
		return err
	})
)

func TestGUPS(t *testing.T) { kerneltest.Run(t, withAtomics, without) }

// verify counts words that were changed by an extra update.
func TestVerification(t *testing.T) {
	require.NoError(t, world.Run(t.Context(), 2, func(ctx context.Context, w *world.World) error {
		table, err := globalarray.New[uint64](ctx, w, 64, globalarray.Blocks())
		if err != nil {
			return err
		}
		for i, word := range table.Local() {
			*word = uint64(i)
		}
		if err := table.Sync(ctx); err != nil {
			return err
		}
		u := &updater{rank: kernel.Of(w, new(bytes.Buffer)), table: table, mask: 63, values: make([]uint64, 0, 10), indices: make([]int, 0, 10)}
		first, last := part(256, w.Rank(), w.Size())
		if err := u.accumulate(ctx, first, last); err != nil {
			return err
		}
		if w.Rank() == 0 {
			if err := table.Accumulate(ctx, window.Xor, []uint64{1, 1}, []int{3, 40}); err != nil {
				return err
			}
		}
		if err := table.Sync(ctx); err != nil {
			return err
		}
		wrong, err := u.verify(ctx, kernel.Of(w, new(bytes.Buffer)), first, last)
		if err != nil {
			return err
		}
		if wrong != 2 {
			return fmt.Errorf("%d words are wrong, want 2", wrong)
		}
		return table.Close()
	}))
}

func TestCommand(t *testing.T) {
	var out, errout bytes.Buffer
	require.Zero(t, newKernel().Command(t.Context(), []string{"-ranks", "3", "-log", "10"}, &out, &errout), "%s", errout.String())
	require.Regexp(t, `^rate +[0-9.e-]+ GUPS\nwrong +0 of 1024 words\n$`, out.String())
	require.Equal(t, 2, newKernel().Command(t.Context(), []string{"-log", "3"}, &out, &errout))
	require.Contains(t, errout.String(), "must be a number from 4 to 40")
}

func Example() {
	fmt.Println(next(1<<63), jump(64) == next(1<<63))
	// Output: 7 true
}
