//go:build !race

package globalarray_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/examples/globalarray"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

func TestNothingIsAllocated(t *testing.T) {
	require.NoError(t, world.Run(t.Context(), 1, func(ctx context.Context, w *world.World) error {
		a, err := globalarray.New[uint64](ctx, w, 100, globalarray.Cyclic(3))
		if err != nil {
			return err
		}
		values, indices := make([]uint64, 10), []int{3, 1, 4, 15, 92, 65, 35, 89, 79, 32}
		for name, do := range map[string]func() error{
			"Get":        func() error { return a.Get(ctx, values, 7) },
			"Put":        func() error { return a.Put(ctx, values, 7) },
			"Gather":     func() error { return a.Gather(ctx, values, indices) },
			"Scatter":    func() error { return a.Scatter(ctx, values, indices) },
			"FetchAndOp": func() error { return a.FetchAndOp(ctx, window.Sum, values, values, indices) },
			"Accumulate": func() error { return a.Accumulate(ctx, window.Xor, values, indices) },
		} {
			var err error
			if n := testing.AllocsPerRun(100, func() { err = do() }); n > 0 || err != nil {
				return fmt.Errorf("%s makes %v allocations: %v", name, n, err)
			}
		}
		return a.Close()
	}))
}
