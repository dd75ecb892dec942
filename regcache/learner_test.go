package regcache

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// teach has a learner see lives of so many uses, one after the other.
func teach(l *learner, lives int, uses uint32) {
	for i := range lives {
		address := uint64(l.now)<<20 + uint64(i+1)
		last, number := l.used(address, 1, 0, 0)
		for k := uint32(2); k <= min(uses, l.enough); k++ {
			last, number = l.used(address, k, last, number)
		}
		if uses > l.enough {
			continue
		}
		l.over(address, number)
	}
}

// What it has seen is what it goes by, and it forgets what was before that.
func TestLearner(t *testing.T) {
	// 20 uses pay.
	l := newLearner(20, 100, 1950)
	require.Equal(t, [5]int{1, 5, 10, 20, 0}, l.thresholds)
	for range 2 {
		for _, lesson := range []struct {
			uses      uint32
			threshold int
		}{
			{100, 1}, // it always pays
			{1, 5},   // each but the first is as good, for none registers
			{7, 10},  // too many uses for a quarter
			{15, 20},
			{25, 1}, // it pays, by little
			{20, 1},
		} {
			teach(l, 3*remembered, lesson.uses)
			require.Equal(t, lesson.threshold, l.threshold(), "lives of %d uses", lesson.uses)
		}
	}
}

// No more than some strangers in a row are taken for good ones.
func TestLearnerOfStrangers(t *testing.T) {
	l := newLearner(20, 100, 1950)
	registered := 0
	for i := range uint64(10_000) {
		if l.threshold() == 1 {
			registered++
		}
		l.used(i+1, 1, 0, 0)
	}
	require.Equal(t, mostStrangers+1, registered)
	require.Equal(t, 5, l.threshold())
}

// Its sums are those of the lives that it knows, whatever happens, and the threshold is the best of them.
func TestLearnerAgainstModel(t *testing.T) {
	for seed := range uint64(50) {
		playLearner(t, rand.New(rand.NewPCG(seed, 3)), 2000)
	}
}

func FuzzLearner(f *testing.F) {
	f.Add(uint64(1), uint64(2))
	f.Fuzz(func(t *testing.T, a, b uint64) { playLearner(t, rand.New(rand.NewPCG(a, b)), 500) })
}

func playLearner(t *testing.T, r *rand.Rand, steps int) {
	pays := r.IntN(30) + 1
	l := newLearner(pays, 100, 100*(float64(pays)-0.5))
	type buffer struct {
		uses, last uint32
		number     uint8
	}
	buffers := make([]buffer, r.IntN(300)+1)
	for range steps {
		i := r.IntN(len(buffers))
		if r.IntN(2) == 0 {
			i /= 16
		}
		b, address := &buffers[i], uint64(i+1)
		if r.IntN(40) == 0 {
			l.over(address, b.number)
			*b = buffer{}
		}
		if b.uses > l.enough {
			continue
		}
		b.uses++
		b.last, b.number = l.used(address, b.uses, b.last, b.number)

		best := 0
		for k, threshold := range l.thresholds {
			sum := int64(0)
			for _, uses := range l.known {
				for n := 1; n <= int(uses); n++ {
					switch {
					case threshold == 0 || n < threshold:
						sum += l.copying
					case n == threshold:
						sum += l.registering
					}
				}
			}
			require.Equal(t, sum, l.costs[k], "threshold %d", threshold)
			if l.costs[k] < l.costs[best] {
				best = k
			}
		}
		if l.strangers <= mostStrangers {
			require.Equal(t, l.thresholds[best], l.threshold())
		}
		require.True(t, l.idle >= leastIdle && l.idle <= mostIdle)
	}
}
