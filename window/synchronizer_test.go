package window_test

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// A window, a World and a Listener are passed by pointer: go vet finds a copy.
func TestVetFindsACopiedWindow(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("go", "vet", "-copylocks", "./testdata/copied").CombinedOutput()
	require.Error(t, err)
	for variable, copied := range map[string]string{"other": "window.Window[int64]", "team": "world.World", "another": "world.Listener"} {
		require.Contains(t, string(out), "assignment copies lock value to "+variable+": github.com/onesided/rma/"+copied)
	}
}

// ExampleSynchronizer synchronizes windows of two types by one function.
func ExampleSynchronizer() {
	inLock := func(ctx context.Context, win window.Synchronizer, target int, do func() error) error {
		if err := win.Lock(ctx, window.Exclusive, target); err != nil {
			return err
		}
		return errors.Join(do(), win.Unlock(ctx, target))
	}
	err := world.Run(context.Background(), 1, func(ctx context.Context, w *world.World) error {
		counts, err := window.Allocate[int](ctx, w, 1)
		if err != nil {
			return err
		}
		means, err := window.Allocate[float64](ctx, w, 1)
		if err != nil {
			return err
		}
		err = errors.Join(
			inLock(ctx, counts, 0, func() error { return counts.Put([]int{2}, 0, 0) }),
			inLock(ctx, means, 0, func() error { return means.Put([]float64{0.5}, 0, 0) }))
		fmt.Println(counts.Local(), means.Local())
		return errors.Join(err, counts.Close(), means.Close())
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: [2] [0.5]
}

// exchangeElements has two ranks sum in a window of T and among them.
func exchangeElements[T int | uint | uintptr](t *testing.T) {
	t.Helper()
	require.NoError(t, world.Run(t.Context(), 2, func(ctx context.Context, w *world.World) error {
		win, err := window.Allocate[T](ctx, w, 1)
		if err != nil {
			return err
		}
		sum := make([]T, 1)
		err = errors.Join(win.Fence(ctx), win.Accumulate(window.Sum, []T{^T(0) >> 1, 2}[w.Rank():][:1], 0, 0), win.Fence(ctx, window.NoSucceed),
			world.AllReduceOp(ctx, w, win.Local(), sum, world.Sum))
		if want := ^T(0)>>1 + 2; sum[0] != want {
			err = errors.Join(err, fmt.Errorf("%T: %d, want %d", want, sum[0], want))
		}
		return errors.Join(err, win.Close())
	}))
}

func TestIntegersOfTheMachineAreElements(t *testing.T) {
	t.Parallel()
	exchangeElements[int](t)
	exchangeElements[uint](t)
	exchangeElements[uintptr](t)
}
