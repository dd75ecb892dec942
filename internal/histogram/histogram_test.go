package histogram

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Every duration lies within the bounds of its bucket, and these differ by at most a sixteenth.
func TestBuckets(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for range 10_000 {
		n := random.Uint64() >> (1 + random.IntN(63))
		bucket := bucketOf(n)
		require.Less(t, bucket, Buckets)
		require.GreaterOrEqual(t, most(bucket), n)
		require.LessOrEqual(t, float64(most(bucket)-n), float64(n)/fine)
		if bucket > 0 {
			require.Less(t, most(bucket-1), n)
		}
	}
}

func TestQuantiles(t *testing.T) {
	var h, other Histogram
	require.Zero(t, h.Quantile(0.5))
	for i := range 1000 {
		to := &h
		if i%2 == 0 {
			to = &other
		}
		to.Add(time.Duration(i+1)*time.Microsecond, 3)
	}
	h.Merge(other.Counts())
	require.EqualValues(t, 3000, h.Total())
	for _, part := range []float64{0.001, 0.5, 0.95, 0.99, 1} {
		exact := part * 1000 * float64(time.Microsecond)
		require.InEpsilon(t, exact, float64(h.Quantile(part)), 1.0/fine, "part %v", part)
	}
}

func TestAddAllocatesNothing(t *testing.T) {
	var h Histogram
	require.Zero(t, testing.AllocsPerRun(100, func() { h.Add(time.Microsecond, 1) }))
}
