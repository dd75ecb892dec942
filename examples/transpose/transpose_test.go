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

// small has a job for each way to move blocks.
var small = []string{
	kerneltest.Register("put, fence", (&job{order: 12, iterations: 3, tile: 5, by: byPut, simd: true}).run),
	kerneltest.Register("put, flush", (&job{order: 60, iterations: 3, tile: 7, by: byPut, sync: syncFlush, simd: true}).run),
	kerneltest.Register("get, fence", (&job{order: 30, iterations: 3, tile: 100, by: byGet, simd: true}).run),
	kerneltest.Register("get, flush", (&job{order: 6, iterations: 4, tile: 1, by: byGet, sync: syncFlush}).run),
}

func TestTranspose(t *testing.T) { kerneltest.Run(t, small...) }

// One wrong element is an error.
func TestVerification(t *testing.T) {
	m := &matrix{job: &job{order: 4, iterations: 1}, ranks: 1, block: 4, b: make([]float64, 16)}
	for j := range 4 {
		for i := range 4 {
			m.b[j*4+i] = float64(2*(4*i+j) + 1)
		}
	}
	require.Zero(t, m.wrong())
	m.b[7]++
	require.Equal(t, 1.0, m.wrong())
}

func TestCommand(t *testing.T) {
	var out, errout bytes.Buffer
	require.Zero(t, newKernel().Command(t.Context(), []string{"-ranks", "4", "-order", "40", "-by", "get", "-sync", "flush"}, &out, &errout), "%s", errout.String())
	require.Regexp(t, `^rate +[0-9.e+-]+ MB/s\niteration +[0-9.e+-]+ us\nexchange +[0-9.e+-]+ us\n$`, out.String())
	for wrong, says := range map[string]string{"-sync=often": "must be fence or flush", "-by=send": "must be put or get", "-order=10": "they must divide it"} {
		errout.Reset()
		require.Equal(t, 2, newKernel().Command(t.Context(), []string{"-ranks", "4", wrong}, &out, &errout), wrong)
		require.Contains(t, errout.String(), says)
	}
}

func Example() {
	var out bytes.Buffer
	fmt.Println(newKernel().Command(context.Background(), []string{"-order", "100", "-ranks", "2"}, &out, &out))
	// Output: 0
}
