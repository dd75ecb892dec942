package scheduler

import (
	"math/bits"

	"github.com/onesided/rma/aggregate"
)

// A Pattern is what epochs have in common that do much the same: the kinds of operations,
// about how many there are, and about how many bytes they touch. It does not depend on the
// scheme. Patterns can be compared.
type Pattern struct {
	// kinds has a bit for each.
	kinds uint8
	// operations is the logarithm of their number, bytes half that of what puts and gets
	// touch.
	operations, bytes uint8
	// ways are those that may matter to such an epoch. patient tells that it should not start
	// early until that has been seen to pay: large reads and writes may take turns, but what
	// starts leaves as it came, and reads behind many writes wait for all of them.
	ways    Scheme
	patient bool
}

// counts are of operations that were dropped.
type counts struct {
	kinds      uint8
	operations int
	// bytes is what puts and gets touch, least what one of them does, mostPut and mostGet
	// what one of each kind does.
	bytes, least, mostPut, mostGet int
}

// add counts a put or get.
func (c *counts) add(kind aggregate.Kind, bytes int) {
	if c.bytes == 0 {
		c.least = bytes
	}
	c.bytes += bytes
	c.least = min(c.least, bytes)
	if kind == aggregate.Put {
		c.mostPut = max(c.mostPut, bytes)
	} else {
		c.mostGet = max(c.mostGet, bytes)
	}
}

// Ended tells the pattern of what has been dropped since it was called last.
func (p *Planner) Ended(q *Queue) Pattern {
	c := q.dropped
	q.dropped = counts{}
	ways := p.matter(&c)
	return Pattern{
		kinds: c.kinds, operations: uint8(bits.Len(uint(c.operations))), bytes: uint8(bits.Len(uint(c.bytes))+1) / 2,
		ways: ways, patient: ways.has(Early|Interleave) && min(c.mostPut, c.mostGet) >= p.worth.small,
	}
}

// matter tells the ways without which the plan of such operations may be another. Runs of accumulates, which go with
// Merge, make another queue of the same plan.
func (p *Planner) matter(c *counts) (ways Scheme) {
	if c.operations == 0 {
		return 0
	}
	ways = Defer
	if c.bytes >= p.startBytes || c.operations >= p.startOperations {
		ways |= Early
	}
	puts, gets := c.kinds&(1<<aggregate.Put) != 0, c.kinds&(1<<aggregate.Get) != 0
	small, large := puts || gets, false
	if p.direct {
		small, large = small && c.least < p.worth.alone, max(c.mostPut, c.mostGet) >= p.worth.sure
	}
	if arranged := c.kinds &^ (1 << aggregate.Notify); arranged&(arranged-1) != 0 || small && large {
		ways |= GetsFirst
	}
	if p.direct && puts && gets {
		ways |= Interleave
	}
	if p.direct && small {
		ways |= Pack
	}
	if small && puts && c.operations > 1 {
		ways |= Merge
	}
	return ways
}
