package scheduler_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/onesided/rma/scheduler"
)

// epochCosts are how long an epoch takes under each scheme, where 1 is usual. Adapt costs nothing.
type epochCosts [scheduler.Adapt]float64

// costing returns the costs of epochs. without has, for a single scheme, how many times as long an epoch takes without it.
// Without Defer no other scheme matters.
func costing(without map[scheduler.Scheme]float64) *epochCosts {
	var c epochCosts
	for s := range c {
		c[s] = 1
		for single, times := range without {
			if single&scheduler.Scheme(s) == 0 && (s&int(scheduler.Defer) != 0 || single == scheduler.Defer) {
				c[s] *= times
			}
		}
	}
	return &c
}

// times returns c multiplied by a factor.
func (c *epochCosts) times(factor float64) *epochCosts {
	longer := *c
	for s := range longer {
		longer[s] *= factor
	}
	return &longer
}

// A phase is a number of epochs of a pattern. queue, if not nil, holds what an epoch queues before its synchronization.
type phase struct {
	epochs  int
	pattern scheduler.Pattern
	costs   *epochCosts
	queue   *scheduler.Queue
}

// scheme returns the scheme by which an epoch of the phase is arranged.
func (p *phase) scheme(l *scheduler.Learner) scheduler.Scheme {
	if p.queue != nil {
		learned := planner(scheduler.All, true).With(l.Scheme(), l.Pattern())
		if _, outgrown := learned.Outgrown(p.queue); outgrown {
			return scheduler.All
		}
	}
	return l.Scheme()
}

// simulated is a machine on which it is known what schemes cost.
type simulated struct {
	r *rand.Rand
	// epoch is how long one is whose cost is 1.
	epoch time.Duration
	// On a noisy machine the length of epochs varies much, one in 30 takes two to five times
	// as long, after a while all take 1.4 times as long or as short, and now and then, once
	// in what 30 blocks take, the machine does something else, for 3 to 100 of those.
	noisy bool

	now, left           float64
	speed, stop, change float64
	reads               int
}

func (m *simulated) clock() time.Duration { m.reads++; return time.Duration(m.now) }

// run has n epochs, of phases in turn, and returns what they cost, how that compares with the
// best scheme if it is kept, and how many epochs began under which scheme.
func (m *simulated) run(l *scheduler.Learner, n int, phases []phase) (ratio float64, under []int) {
	const block = 150e3
	total, weights := 0.0, make([]float64, len(phases))
	under = make([]int, scheduler.All+1)
	m.speed, m.stop, m.change = 1, m.r.ExpFloat64()*30*block, 3000
	for i, at, left := 0, 0, phases[0].epochs; i < n; i, left = i+1, left-1 {
		if left == 0 {
			at = (at + 1) % len(phases)
			left = phases[at].epochs
		}
		if m.noisy && float64(i) >= m.change {
			m.change += 2000 + 4000*m.r.Float64()
			m.speed = 1.4 / m.speed
		}
		p := &phases[at]
		weights[at] += m.speed
		s := p.scheme(l)
		under[s]++
		cost := p.costs[s&^scheduler.Adapt] * m.speed
		total += cost
		m.pass(cost * float64(m.epoch))
		if m.noisy && m.now > m.stop {
			m.now += 3 * block * math.Exp(m.r.Float64()*math.Log(100./3))
			m.stop = m.now + m.r.ExpFloat64()*30*block
		}
		l.End(p.pattern, m.clock)
	}
	return total / best(phases, weights), under
}

// best is what phases of some weights cost under the scheme that is best for all.
func best(phases []phase, weights []float64) float64 {
	var kept epochCosts
	for s := range kept {
		for i := range phases {
			kept[s] += weights[i] * phases[i].costs[s]
		}
	}
	return slices.Min(kept[:])
}

// pass has the time pass of an epoch, a part of which is done in the time of the next.
func (m *simulated) pass(took float64) {
	varies := 0.05
	if m.noisy {
		varies = 0.2
		if m.r.IntN(30) == 0 {
			took *= 2 + 3*m.r.Float64()
		}
	}
	took *= math.Exp(varies * m.r.NormFloat64())
	m.now += 0.8*took + m.left
	m.left = 0.2 * took
}
