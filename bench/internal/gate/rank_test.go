package gate

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/testsize"
)

// The rank sums of these tables are from Wilcoxon's: the largest that is significant. critical is one above it.
func TestCritical(t *testing.T) {
	for _, c := range []struct {
		n           int
		probability float64
		want        int
	}{
		{0, 0.05, 0}, {4, 0.05, 0}, {5, 0.05, 1}, {5, 0.025, 0}, {6, 0.025, 1}, {8, 0.025, 4}, {10, 0.025, 9}, {10, 0.005, 4},
		{15, 0.025, 26}, {20, 0.05, 61}, {20, 0.025, 53}, {20, 0.005, 38}, {30, 0.025, 138}, {30, 0.005, 110},
	} {
		assert.Equal(t, c.want, critical(c.n, c.probability), "%d values, %v", c.n, c.probability)
	}
}

func TestEnoughValuesHaveBounds(t *testing.T) {
	for _, p := range []float64{0.5, 0.3, 0.05, 0.01, 1.0 / 1024, 1e-4, 7e-5} {
		n := enough(p)
		assert.Positive(t, critical(n, p), "%v", p)
		assert.Zero(t, critical(n-1, p), "%v", p)
	}
}

// With the sizes of values given, each pattern of signs is as likely as another.
func TestBoundsHaveTheirProbability(t *testing.T) {
	sizes := []float64{0.3, 1, 2.5, 2.7, 4, 5.1, 8.2, 9.9, 11.3}
	for _, p := range []float64{0.002, 0.01, 0.05, 0.2} {
		above, below := 0, 0
		for pattern := range 1 << len(sizes) {
			values := make([]float64, len(sizes))
			for i, size := range sizes {
				values[i] = size * float64(pattern>>i&1*2-1)
			}
			s := SignedRank(values)
			if s.Lower(p) > 0 {
				above++
			}
			if s.Upper(p) < 0 {
				below++
			}
		}
		all := float64(int(1) << len(sizes))
		assert.Equal(t, above, below)
		assert.LessOrEqual(t, float64(above)/all, p)
		// The next bound would be wrong too often, so this one is the closest.
		assert.Greater(t, float64(above)/all, p/2)
	}
}

func TestShift(t *testing.T) {
	assert.True(t, math.IsNaN(SignedRank(nil).Shift()))
	assert.Equal(t, math.Inf(-1), SignedRank([]float64{1}).Lower(0.01))
	assert.Equal(t, math.Inf(1), SignedRank([]float64{1}).Upper(0.01))
	for _, c := range []struct {
		values []float64
		want   float64
	}{{[]float64{3}, 3}, {[]float64{1, 2}, 1.5}, {[]float64{5, 1, 3}, 3}, {[]float64{1, 1, 1, 1000}, 1}} {
		assert.Equal(t, c.want, SignedRank(c.values).Shift(), "%v", c.values)
	}
}

func TestBoundsFollowTheValues(t *testing.T) {
	for seed := range testsize.Samples(t, 50) {
		random := rand.New(rand.NewPCG(seed, 1))
		values := make([]float64, 1+random.IntN(30))
		shifted, mirrored := make([]float64, len(values)), make([]float64, len(values))
		for i := range values {
			values[i] = math.Round(random.NormFloat64() * 8) // with equal ones
			shifted[i], mirrored[i] = values[i]+3, -values[i]
		}
		s, up, back := SignedRank(values), SignedRank(shifted), SignedRank(mirrored)
		const p = 0.03
		require.LessOrEqual(t, s.Lower(p), s.Shift(), "seed %d", seed)
		require.LessOrEqual(t, s.Shift(), s.Upper(p), "seed %d", seed)
		require.LessOrEqual(t, s.Lower(p/10), s.Lower(p), "seed %d: less risk, wider interval", seed)
		require.Equal(t, s.Shift()+3, up.Shift(), "seed %d", seed)
		require.Equal(t, s.Lower(p)+3, up.Lower(p), "seed %d", seed)
		require.Equal(t, -s.Shift(), back.Shift(), "seed %d", seed)
		require.Equal(t, -s.Lower(p), back.Upper(p), "seed %d", seed)
	}
}
