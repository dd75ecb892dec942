package scale

import (
	"bytes"
	"context"
	"io"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/bench/internal/benchtest"
	"github.com/onesided/rma/bench/internal/golden"
)

func TestScaleAsText(t *testing.T) {
	g := &Growth{Workload: "fence", Device: "sim:ndr-2024"}
	for n := 4.0; n <= 256; n *= 4 {
		g.Points = append(g.Points, Point{Ranks: int(n), Micros: 1.5 + 2*math.Log2(n), Frames: 1 + math.Log2(n), Bytes: 100e3 + 300*n, EventNanos: 1234.4, Start: 250 * n})
	}
	g.judge()
	var b bytes.Buffer
	require.NoError(t, write(&b, "go run ./bench scale fence", []*Growth{g}))
	golden.Check(t, "testdata/scale.golden", b.String())
}

func TestLaws(t *testing.T) {
	n := []float64{16, 32, 64, 128}
	for _, one := range []struct {
		name   string
		values []float64
		says   string
	}{
		{"logarithmic", []float64{5, 6, 7, 8}, "1 + 1 log2 n us, within 0 %"},
		{"linear", []float64{17, 33, 65, 129}, "1 + 1 n us, within 0 %"},
		{"falling", []float64{4, 3, 2, 1}, "8 - 1 log2 n us, within 0 %"},
		{"off", []float64{5, 9, 7, 10}, "0.6 + 1.3 log2 n us, within 21 %"},
	} {
		assert.Equal(t, one.says, fit(n, one.values).describe("us"), one.name)
	}
	assert.Equal(t, "too few points: a law needs 3 numbers of ranks, each 16 or more", law{}.describe("us"))
}

func TestTorus(t *testing.T) {
	for _, n := range []int{2, 3, 4, 6, 16, 24, 97, 4096} {
		for rank := range n {
			around := torus(rank, n)
			for i, other := range around {
				require.GreaterOrEqual(t, other, 0)
				require.Less(t, other, n)
				require.Equal(t, rank, torus(other, n)[i^1], "%d of %d: what is there is here", rank, n)
			}
		}
	}
}

func TestScaleThatEndsEarlyHasWhatCameBefore(t *testing.T) {
	benchtest.OnlyVirtual(t)
	o, err := parse([]string{"-ranks", "4,8", "stencil"}, io.Discard)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	extents, err := o.measure(ctx, func(line string) {
		if line == "stencil, 8 ranks" {
			cancel()
		}
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Len(t, extents, 1)
	require.Len(t, extents[0].Points, 1)
	require.Equal(t, 4, extents[0].Points[0].Ranks)
}
