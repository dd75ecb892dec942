package main

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/testsize"
)

// Vector code gives the same sums as the loops at every alignment, and writes nothing around them.
func TestVectors(t *testing.T) {
	v := vectors()
	if v == nil {
		t.Skip("skipped: this processor has no vectors for the stars")
	}
	const guard = 9
	random := testsize.Random(t, 2)
	for _, radius := range []int{1, 2, 3, 4, 5, 9, 64} {
		weights := make([]float64, radius)
		for i := range weights {
			weights[i] = random.Float64()
		}
		for n := range 71 {
			at := n % 8
			stride := n + 2*radius + n%5
			lines := make([]float64, at+(2*radius+1)*stride)
			for i := range lines {
				lines[i] = random.NormFloat64()
			}
			in := append([]float64(nil), lines...)
			want, got := make([]float64, n+2*guard), make([]float64, n+2*guard)
			for i := range want {
				want[i] = 1000 + float64(i)
				got[i] = want[i]
			}
			from := guard - at
			loops.addStars(want[from:][:n], in[at:], stride, weights)
			v.addStars(got[from:][:n], in[at:], stride, weights)
			require.Equal(t, lines, in)
			for i := range want {
				if i < from || i >= from+n {
					require.Equal(t, want[i], got[i], "radius %d, %d stars, element %d", radius, n, i-from)
				} else {
					// The vector code rounds the sums in another order.
					require.LessOrEqual(t, math.Abs(want[i]-got[i]), 1e-11, "radius %d, %d stars, element %d", radius, n, i-from)
				}
			}
			loops.increase(want[from:][:n])
			copy(got, want)
			loops.increase(want[from:][:n])
			v.increase(got[from:][:n])
			require.Equal(t, want, got, "%d elements", n)
		}
	}
}

// Lines that are too short cause a panic before anything is read.
func TestShortLines(t *testing.T) {
	for _, by := range []*arithmetic{&loops, vectors()} {
		if by == nil {
			continue
		}
		const n, radius, stride = 20, 3, 26
		all := (2*radius)*stride + radius + n
		weights := make([]float64, radius)
		require.NotPanics(t, func() { by.addStars(make([]float64, n), make([]float64, all), stride, weights) })
		require.Panics(t, func() { by.addStars(make([]float64, n), make([]float64, all-1), stride, weights) })
	}
}

func BenchmarkAddStars(b *testing.B) {
	for name, by := range map[string]*arithmetic{"loops": &loops, "vectors": vectors()} {
		for _, radius := range []int{2, 4} {
			for _, n := range []int{48, 996} {
				b.Run(fmt.Sprintf("%s/radius=%d/%d", name, radius, n), func(b *testing.B) {
					if by == nil {
						b.Skip("skipped: this processor has no vectors for the stars")
					}
					stride := n + 2*radius
					out, lines, weights := make([]float64, n), make([]float64, (2*radius+1)*stride), make([]float64, radius)
					b.SetBytes(int64(n) * 8)
					for b.Loop() {
						by.addStars(out, lines, stride, weights)
					}
				})
			}
		}
	}
}
