package main

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/examples/globalarray"
	"github.com/onesided/rma/examples/internal/kernel"
	"github.com/onesided/rma/examples/internal/kernel/kerneltest"
	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/world"
)

func TestMain(m *testing.M) { jobtest.Main(m) }

var small = []string{
	kerneltest.Register("some bands", (&job{size: 500, bands: 3, most: 200, digits: 9}).run),
	kerneltest.Register("as many ranks as rows, nearly", (&job{size: 4, bands: 1, most: 50, digits: 9}).run),
}

func TestCG(t *testing.T) { kerneltest.Run(t, small...) }

// multiply gives the product with the dense matrix, which is symmetric.
func TestMultiply(t *testing.T) {
	j := &job{size: 30, bands: 2}
	matrix := make([][]float64, j.size)
	for i := range matrix {
		matrix[i] = make([]float64, j.size)
		matrix[i][i] += float64(2*j.bands + 1)
	}
	for _, step := range j.steps() {
		for i := range matrix {
			other := (step[0]*i + step[1]) % j.size
			matrix[i][other]--
			matrix[other][i]--
		}
	}
	require.NoError(t, world.Run(t.Context(), 3, func(ctx context.Context, w *world.World) error {
		direction, err := globalarray.New[float64](ctx, w, j.size, globalarray.Blocks())
		if err != nil {
			return err
		}
		s := newSystem(j, kernel.Of(w, new(bytes.Buffer)), direction)
		vector, product := make([]float64, len(direction.Part())), make([]float64, len(direction.Part()))
		for i := range vector {
			vector[i] = solution(direction.Index(w.Rank(), i))
		}
		if err := s.multiply(ctx, product, vector); err != nil {
			return err
		}
		for i := range product {
			want := 0.0
			for k, value := range matrix[direction.Index(w.Rank(), i)] {
				want += value * solution(k)
			}
			require.InDelta(t, want, product[i], 1e-12)
		}
		return direction.Close()
	}))
}

func TestInverse(t *testing.T) {
	for n := 2; n < 50; n++ {
		for a := 1; a < n; a++ {
			if common(a, n) == 1 {
				require.Equal(t, 1, a*inverse(a, n)%n, "%d modulo %d", a, n)
			}
		}
	}
}

func TestCommand(t *testing.T) {
	var out, errout bytes.Buffer
	require.Zero(t, newKernel().Command(t.Context(), []string{"-ranks", "3", "-n", "1000"}, &out, &errout), "%s", errout.String())
	require.Regexp(t, `(?s)^rate +[0-9.e+-]+ MFlop/s\n.*iterations +[0-9]+ *\noff +[0-9.e+-]+ *\n$`, out.String())
	require.Equal(t, 1, newKernel().Command(t.Context(), []string{"-n", "1000", "-iterations", "3"}, &out, &errout))
	require.Contains(t, errout.String(), "verification failed: after 3 iterations an element is off by")
}

func Example() {
	var out bytes.Buffer
	fmt.Println(newKernel().Command(context.Background(), []string{"-n", "300", "-ranks", "2"}, &out, &out))
	// Output: 0
}
