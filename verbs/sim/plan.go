package sim

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"
)

// Plan draws faults from a seed: at most six of any kinds, at times from 0 to the horizon, for a job of a number of
// ranks. At least one rank is neither killed nor without power. Plan is a pure function, so a failing test can print
// and keep its result.
func Plan(seed uint64, ranks int, horizon time.Duration) Faults {
	random := rand.New(rand.NewPCG(seed, 2))
	horizon = max(horizon, 1)
	alive := make([]int, max(ranks, 1))
	for i := range alive {
		alive[i] = i
	}
	var faults Faults
	for range 1 + random.IntN(6) {
		f := Fault{Kind: FaultKind(random.IntN(int(faultKinds))), At: time.Duration(random.Int64N(int64(horizon)))}
		rank := random.IntN(len(alive))
		f.Rank = alive[rank]
		switch f.Kind {
		case Kill:
			if len(alive) == 1 {
				continue
			}
			alive = slices.Delete(alive, rank, rank+1)
		case PowerLoss:
			if len(alive) == 1 {
				continue
			}
			random.Shuffle(len(alive), func(i, j int) { alive[i], alive[j] = alive[j], alive[i] })
			half := len(alive) / 2
			f.Rank, f.Ranks = 0, slices.Sorted(slices.Values(alive[:half]))
			alive = alive[half:]
		case FailPair:
			f.Peer = random.IntN(max(ranks, 1))
		case Delay:
			f.By = 1 + draw(random, horizon)
		case Starve:
			f.Times = 1 + random.IntN(8)
		case Slow:
			f.Factor = []int{2, 10, 1000}[random.IntN(3)]
		}
		if f.Kind == Delay || f.Kind == Stall {
			f.Direction = Direction(random.IntN(2))
		}
		if f.Kind.lasts() && random.IntN(4) > 0 {
			f.For = 1 + draw(random, horizon)
		}
		faults = append(faults, f)
	}
	slices.SortStableFunc(faults, func(a, b Fault) int { return cmp.Compare(a.At, b.At) })
	return faults
}

// draw returns a time of at most half a horizon, of any order of magnitude down to a thousandth of it.
func draw(random *rand.Rand, horizon time.Duration) time.Duration {
	return time.Duration(random.Int64N(int64(max(horizon>>(1+random.IntN(10)), 1))))
}
