package scheduler

import (
	"math"
	"math/bits"

	"github.com/onesided/rma/aggregate"
)

// A Pattern is what similar epochs have in common: the kinds of operations, and the approximate numbers of operations
// and of bytes. It does not depend on the scheme. Patterns are comparable.
type Pattern struct {
	// kinds has a bit for each kind.
	kinds uint8
	// operations is the logarithm of their number. bytes is half the logarithm of the bytes that puts and gets touch.
	operations, bytes uint8
	// relevant are the schemes that may matter to such an epoch. patient is set if the epoch should not start early
	// until that has been seen to pay. Its large reads and writes could alternate, but operations that start early keep
	// program order, and reads after many writes wait for all of them.
	relevant Scheme
	patient  bool
}

// most returns the largest numbers of bytes and operations of such an epoch. The zero Pattern has no limits.
func (p Pattern) most() (bytes, operations int) {
	if p.operations == 0 {
		return math.MaxInt, math.MaxInt
	}
	return 1<<min(2*p.bytes, bits.UintSize-2) - 1, 1<<p.operations - 1
}

// counts describe the operations that were dropped from a queue.
type counts struct {
	kinds      uint8
	operations int
	// bytes is the total that puts and gets touch, least the smallest of them. mostPut and mostGet are the largest put
	// and get.
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

// Ended returns the pattern of the operations that were dropped from q since the last call of Ended.
func (p *Planner) Ended(q *Queue) Pattern {
	c := q.dropped
	q.dropped = counts{}
	schemes := p.relevant(&c)
	return Pattern{
		kinds: c.kinds, operations: uint8(bits.Len(uint(c.operations))), bytes: uint8(bits.Len(uint(c.bytes))+1) / 2,
		relevant: schemes, patient: schemes.has(Early|Interleave) && min(c.mostPut, c.mostGet) >= p.packing.small,
	}
}

// relevant returns the schemes without which the plan of such operations may differ. Runs of accumulates, which depend
// on Merge, change the queue but not the plan.
func (p *Planner) relevant(c *counts) (schemes Scheme) {
	if c.operations == 0 {
		return 0
	}
	schemes = Defer
	if c.bytes >= p.startBytes || c.operations >= p.startOperations {
		schemes |= Early
	}
	puts, gets := c.kinds&(1<<aggregate.Put) != 0, c.kinds&(1<<aggregate.Get) != 0
	small, large := puts || gets, false
	if p.direct {
		small, large = small && c.least < p.packing.alone, max(c.mostPut, c.mostGet) >= p.packing.sure
	}
	if arranged := c.kinds &^ (1 << aggregate.Notify); arranged&(arranged-1) != 0 || small && large {
		schemes |= GetsFirst
	}
	if p.direct && puts && gets {
		schemes |= Interleave
	}
	if p.direct && small {
		schemes |= Pack
	}
	if small && puts && c.operations > 1 {
		schemes |= Merge
	}
	return schemes
}
