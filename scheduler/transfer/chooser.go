package transfer

import (
	"math"
	"sort"
)

// once are the protocols that keep nothing.
var once = [...]Protocol{Copy, CopyPipeline, Superpipeline, Register, Pipeline}

// A Chooser chooses among protocols by the length of an operation.
type Chooser struct {
	// limits are where others get better, by length.
	limits []limit
}

// A limit is from how many bytes on a protocol is the best.
type limit struct {
	bytes    int
	protocol Protocol
}

const (
	// better is how much better another protocol must be to be changed to.
	better = 1e-3
	// mostChosen is the longest operation for which it is computed what is best, in bytes: what
	// is best for it is for longer ones.
	mostChosen = 1 << 30
)

// Chooser is that of puts or of gets among those of some protocols that keep nothing: of Copy,
// CopyPipeline, Superpipeline, Register and Pipeline. Where there is none of these in the set it
// chooses Copy.
//
// Where it is not known what copying takes, what fits the stage is copied, and what does not goes by
// Superpipeline, if the set has them.
func (m *Model) Chooser(s Set, write bool) *Chooser {
	var among []Protocol
	for _, p := range once {
		if s.Has(p) {
			among = append(among, p)
		}
	}
	switch {
	case len(among) == 0:
		return &Chooser{[]limit{{0, Copy}}}
	case m.copying == 0:
		return m.unknown(s, among)
	}
	c := &Chooser{[]limit{{0, m.least(among, write, 1)}}}
	jumps := m.jumps()
	for from, to := 1, 0; from < mostChosen; from = to {
		to = max(from+1, from+from/6)
		for _, jump := range jumps {
			if from < jump && jump < to {
				to = jump
			}
		}
		for now := c.last(); !m.near(now, among, write, to); now = c.last() {
			// Somewhere above from another is better.
			low, high := from, to
			for low+1 < high {
				if middle := low + (high-low)/2; m.near(now, among, write, middle) {
					low = middle
				} else {
					high = middle
				}
			}
			c.limits = append(c.limits, limit{high, m.least(among, write, high)})
			from = high
		}
	}
	return c
}

// last is what is chosen for the longest operations.
func (c *Chooser) last() Protocol { return c.limits[len(c.limits)-1].protocol }

// jumps are lengths at which what a protocol takes is not what it takes one byte before.
func (m *Model) jumps() []int {
	// Pipeline begins to register, and Copy needs another piece.
	jumps := []int{sort.Search(mostChosen, func(bytes int) bool { registered, _ := m.registered(Pipeline, bytes); return registered > 0 })}
	for pieces := 1; pieces <= 4 && m.longest() < mostChosen; pieces++ {
		jumps = append(jumps, pieces*m.longest()+1)
	}
	return jumps
}

// unknown is the Chooser where it is not known what copying takes.
func (m *Model) unknown(s Set, among []Protocol) *Chooser {
	short, long := among[0], among[0]
	if s.Has(Superpipeline) {
		long = Superpipeline
	}
	if short == long || m.stage == math.MaxInt {
		return &Chooser{[]limit{{0, short}}}
	}
	return &Chooser{[]limit{{0, short}, {m.stage + 1, long}}}
}

// least is the protocol that takes the least time.
func (m *Model) least(among []Protocol, write bool, bytes int) Protocol {
	best, least := among[0], m.Time(among[0], write, bytes)
	for _, p := range among[1:] {
		if took := m.Time(p, write, bytes); took < times(least, 1-better) {
			best, least = p, took
		}
	}
	return best
}

// near tells whether a protocol takes hardly longer than the best.
func (m *Model) near(p Protocol, among []Protocol, write bool, bytes int) bool {
	most := times(m.Time(p, write, bytes), 1-better)
	for _, other := range among {
		if m.Time(other, write, bytes) < most {
			return false
		}
	}
	return true
}

// Best is the protocol that takes the least time for the first and only use of a buffer, or hardly
// more.
func (c *Chooser) Best(bytes int) Protocol {
	i := len(c.limits) - 1
	for i > 0 && bytes < c.limits[i].bytes {
		i--
	}
	return c.limits[i].protocol
}
