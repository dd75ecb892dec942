package transfer

import (
	"math"
	"sort"
)

// once are the protocols that keep no registration.
var once = [...]Protocol{Copy, CopyPipeline, Superpipeline, Register, Pipeline}

// A Chooser chooses a protocol by the length of an operation.
type Chooser struct {
	// limits are the lengths from which on another protocol is better, in ascending order.
	limits []limit
}

// A limit is a protocol and the length in bytes from which on it is the best.
type limit struct {
	bytes    int
	protocol Protocol
}

const (
	// better is the relative gain that justifies a change of protocol.
	better = 1e-3
	// mostChosen is the longest operation for which the best protocol is computed, in bytes. Longer ones use the same
	// protocol.
	mostChosen = 1 << 30
)

// Chooser returns a Chooser for puts (write) or gets among those protocols of the set that keep no registration: Copy,
// CopyPipeline, Superpipeline, Register and Pipeline. If the set has none of these, it chooses Copy.
//
// If the cost of copying is unknown, it chooses the first of these protocols in the set for operations that fit the
// stage. For longer ones it chooses Superpipeline, if the set has it.
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
			// Another protocol is better from some length above from on.
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

// last returns the protocol for the longest operations.
func (c *Chooser) last() Protocol { return c.limits[len(c.limits)-1].protocol }

// jumps returns the lengths at which a protocol's time is not continuous.
func (m *Model) jumps() []int {
	// Pipeline begins to register, and Copy needs another piece.
	jumps := []int{sort.Search(mostChosen, func(bytes int) bool { registered, _ := m.registered(Pipeline, bytes); return registered > 0 })}
	for pieces := 1; pieces <= 4 && m.longest() < mostChosen; pieces++ {
		jumps = append(jumps, pieces*m.longest()+1)
	}
	return jumps
}

// unknown returns the Chooser if the cost of copying is unknown.
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

// least returns the protocol that takes the least time.
func (m *Model) least(among []Protocol, write bool, bytes int) Protocol {
	best, least := among[0], m.Time(among[0], write, bytes)
	for _, p := range among[1:] {
		if took := m.Time(p, write, bytes); took < times(least, 1-better) {
			best, least = p, took
		}
	}
	return best
}

// near reports whether a protocol takes hardly longer than the best.
func (m *Model) near(p Protocol, among []Protocol, write bool, bytes int) bool {
	most := times(m.Time(p, write, bytes), 1-better)
	for _, other := range among {
		if m.Time(other, write, bytes) < most {
			return false
		}
	}
	return true
}

// Best returns the protocol that takes the least time, or hardly more, for the first and only use of a buffer.
func (c *Chooser) Best(bytes int) Protocol {
	i := len(c.limits) - 1
	for i > 0 && bytes < c.limits[i].bytes {
		i--
	}
	return c.limits[i].protocol
}
