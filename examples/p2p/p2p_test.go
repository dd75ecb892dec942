package main

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/examples/internal/kernel/kerneltest"
	"github.com/onesided/rma/internal/jobtest"
)

func TestMain(m *testing.M) { jobtest.Main(m) }

var small = []string{
	kerneltest.Register("line by line", (&job{columns: 13, lines: 20, iterations: 3, group: 1}).run),
	kerneltest.Register("in groups", (&job{columns: 6, lines: 31, iterations: 4, group: 7}).run),
	kerneltest.Register("all at once", (&job{columns: 30, lines: 10, iterations: 2, group: 100}).run),
}

func TestPipeline(t *testing.T) { kerneltest.Run(t, small...) }

// sum computes a line as the definition says.
func TestSum(t *testing.T) {
	line, above := []float64{5, 0, 0, 0}, []float64{1, 2, 4, 9}
	sum(line, above)
	want := []float64{5, 0, 0, 0}
	for c := 1; c < 4; c++ {
		want[c] = want[c-1] + above[c] - above[c-1]
	}
	require.Equal(t, want, line)
}

func TestCommand(t *testing.T) {
	var out, errout bytes.Buffer
	require.Zero(t, newKernel().Command(t.Context(), []string{"-ranks", "3", "-m", "100", "-n", "50"}, &out, &errout), "%s", errout.String())
	require.Regexp(t, `^rate +[0-9.e+-]+ MFlop/s\niteration +[0-9.e+-]+ us\n$`, out.String())
	require.Equal(t, 2, newKernel().Command(t.Context(), []string{"-ranks", "3", "-m", "5"}, &out, &errout))
	require.Contains(t, errout.String(), "each needs at least 2 columns")
}

func Example() {
	var out bytes.Buffer
	fmt.Println(newKernel().Command(context.Background(), []string{"-m", "100", "-ranks", "2"}, &out, &out))
	// Output: 0
}
