package regcache

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/testsize"
)

// teach has a learner see lives of so many uses, one after the other.
func teach(l *learner, lives int, uses uint32) {
	for i := range lives {
		address := uint64(l.now)<<20 + uint64(i+1)
		last, number := l.used(address, 1, 0, 0, false)
		for k := uint32(2); k <= min(uses, l.enough); k++ {
			last, number = l.used(address, k, last, number, false)
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
	l := newLearner(20, 1000, 100, 1950)
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

// What never comes again costs some registrations and a part of the time, until that is known.
func TestLearnerOfStrangers(t *testing.T) {
	l := newLearner(20, 1000, 100, 1950)
	registered := 0
	for i := range uint64(10_000) {
		if l.threshold() == 1 {
			registered++
			l.speculate()
		}
		l.used(i+1, 1, 0, 0, false)
	}
	require.GreaterOrEqual(t, registered, stake)
	require.LessOrEqual(t, float64(registered)*1950, stake*1950+part*10_000*1100)
	require.Equal(t, 5, l.threshold())
}

// Where registrations are not paid back they end, until uses have taken so long that another is a small
// part of that; where they are there are more.
func TestLearnerInDebt(t *testing.T) {
	l := newLearner(20, 1000, 100, 1950)
	for range stake {
		require.Equal(t, 1, l.threshold())
		l.speculate()
	}
	require.Equal(t, 20, l.threshold(), "it has to be certain")
	l.spared()
	require.Equal(t, 1, l.threshold(), "one could not be registered")
	l.speculate()

	// Another buffer is used, and not registered.
	last, number := l.used(1, 1, 0, 0, false)
	uses := 1
	for k := uint32(2); l.threshold() != 1; k++ {
		last, number = l.used(1, min(k, l.enough-1), last, number, false)
		uses++
	}
	require.InDelta(t, 1950/part, float64(uses)*1100, 1100)
	l.speculate()

	// One that is registered pays for itself, and then for another, but not for any number.
	for uses = 0; l.threshold() != 1; uses++ {
		last, number = l.used(1, l.enough-1, last, number, true)
	}
	require.InDelta(t, 1950/(100+1000*part), uses, 1)
	for range 10_000 {
		last, number = l.used(1, l.enough-1, last, number, true)
	}
	l.took = 0
	for range hoard + stake {
		require.Equal(t, 1, l.threshold())
		l.speculate()
	}
	require.Equal(t, 20, l.threshold())
}

// Its sums are those of the lives that it knows, whatever happens, and the threshold is the best of them.
func TestLearnerAgainstModel(t *testing.T) {
	for seed := range testsize.Samples(t, 50) {
		playLearner(t, rand.New(rand.NewPCG(seed, 3)), 2000)
	}
}

func FuzzLearner(f *testing.F) {
	f.Add(uint64(1), uint64(2))
	f.Fuzz(func(t *testing.T, a, b uint64) { playLearner(t, rand.New(rand.NewPCG(a, b)), 500) })
}

func playLearner(t *testing.T, r *rand.Rand, steps int) {
	pays := r.IntN(30) + 1
	l := newLearner(pays, 1000, 100, 100*(float64(pays)-0.5))
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
		registered := r.IntN(2) == 0
		if registered && r.IntN(4) == 0 {
			l.speculate()
		}
		b.last, b.number = l.used(address, b.uses, b.last, b.number, registered)

		best := 0
		for k, threshold := range l.thresholds {
			sum := int64(0)
			for _, uses := range l.known {
				copied := int(uses)
				if threshold > 0 && copied >= threshold {
					copied = threshold - 1
					sum += l.registering
				}
				sum += int64(copied) * l.copying
			}
			if l.costs[k] != sum {
				t.Fatalf("threshold %d: the sum is %d, must be %d", threshold, l.costs[k], sum)
			}
			if l.costs[k] < l.costs[best] {
				best = k
			}
		}
		switch threshold := l.threshold(); {
		case l.solvent() && threshold != l.thresholds[best]:
			t.Fatalf("the threshold is %d, the best is %d", threshold, l.thresholds[best])
		case !l.solvent() && threshold != l.thresholds[certain] && threshold != 0:
			t.Fatalf("the threshold is %d, in debt", threshold)
		case l.debt < -hoard*l.registering:
			t.Fatalf("the debt is %v, the least is %v", l.debt, -hoard*l.registering)
		case l.idle < leastIdle || l.idle > mostIdle:
			t.Fatalf("idle is %v, must be %v to %v", l.idle, leastIdle, mostIdle)
		}
	}
}
