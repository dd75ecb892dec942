package main

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/examples/grid"
	"github.com/onesided/rma/examples/internal/kernel/kerneltest"
	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/world"
)

func TestMain(m *testing.M) { jobtest.Main(m) }

// small has a job for each synchronization, with the loops and with vector code.
var small = []string{
	kerneltest.Register("fences", (&job{order: 13, iterations: 3, radius: 1, by: grid.Fence, simd: true}).run),
	kerneltest.Register("groups", (&job{order: 20, iterations: 3, radius: 2, by: grid.PSCW}).run),
	kerneltest.Register("notifications", (&job{order: 31, iterations: 3, radius: 3, by: grid.Notify, simd: true}).run),
}

func TestStencil(t *testing.T) { kerneltest.Run(t, small...) }

// A wrong element in a border changes the norm.
func TestVerification(t *testing.T) {
	require.NoError(t, world.Run(t.Context(), 2, func(ctx context.Context, w *world.World) error {
		field, err := grid.New(ctx, w, 10, 10, 2, grid.Fence)
		if err != nil {
			return err
		}
		s := newSweep(field, 10, 2, loops)
		norms := make([]float64, 2)
		for i := range norms {
			if err := field.Exchange(ctx); err != nil {
				return err
			}
			if i == 1 && w.Rank() == 0 {
				field.Row(field.Rows)[5]++
			}
			before := s.norm()
			s.apply()
			sum := []float64{s.norm() - before}
			if err := world.AllReduceOp(ctx, w, sum, sum, world.Sum); err != nil {
				return err
			}
			norms[i] = sum[0]
		}
		require.InDelta(t, 2*36, norms[0], 1e-9)
		require.Greater(t, norms[1], 2*36+0.1)
		return field.Close()
	}))
}

func TestCommand(t *testing.T) {
	var out, errout bytes.Buffer
	require.Zero(t, newKernel().Command(t.Context(), []string{"-ranks", "4", "-n", "40", "-radius", "4", "-sync", "fence"}, &out, &errout), "%s", errout.String())
	require.Regexp(t, `^rate +[0-9.e+-]+ MFlop/s\niteration +[0-9.e+-]+ us\nexchange +[0-9.e+-]+ us\n$`, out.String())
	for wrong, says := range map[string]string{"-sync=often": "allowed are [fence pscw notify]", "-n=4": "must be more than 4", "-n=5": "at least as many lines"} {
		errout.Reset()
		require.Equal(t, 2, newKernel().Command(t.Context(), []string{"-ranks", "9", wrong}, &out, &errout), wrong)
		require.Contains(t, errout.String(), says)
	}
}

func Example() {
	var out bytes.Buffer
	k := newKernel()
	fmt.Println(k.Command(context.Background(), []string{"-n", "100", "-ranks", "2"}, &out, &out))
	// Output: 0
}
