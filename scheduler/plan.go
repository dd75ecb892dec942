package scheduler

import (
	"math"

	"github.com/onesided/rma/aggregate"
	"github.com/onesided/rma/verbs"
)

// A Step of a plan covers the operations [First, First+Count) of the queue: one operation, or several puts that go as
// one. Merged puts touch a range of the window without a gap, from the Offset of the first on. The caller copies each
// put to its place in that range in program order, so that the last put to a place wins.
type Step struct {
	First, Count int32
	// Packed reports that the operations go in a message and touch Bytes of the window together. Otherwise the step is
	// one operation that goes direct, by RDMA.
	Packed bool
	Bytes  int
}

// A Plan is the steps of all operations of a queue, in the order in which they leave.
type Plan struct{ Steps []Step }

func (p *Plan) add(first, count int, packed bool, bytes int) {
	p.Steps = append(p.Steps, Step{int32(first), int32(count), packed, bytes})
}

// LastDirect returns the index of the last direct step, or -1 if there is none.
func (p *Plan) LastDirect() int {
	last := len(p.Steps) - 1
	for last >= 0 && p.Steps[last].Packed {
		last--
	}
	return last
}

// A Planner arranges operations for one target. It is an immutable value.
type Planner struct {
	// base is the scheme of the conditions.
	scheme, base Scheme
	// packs reports whether the scheme of the conditions packs.
	packs bool
	// direct reports whether operations may use RDMA, atomics whether the accumulate family does.
	direct, atomics bool
	// most is the maximum number of bytes that one packed operation may touch.
	most    int
	packing packing
	// startBytes and startOperations are how many bytes or operations are worth starting before the synchronization.
	startBytes, startOperations int
	// A queue is due if it has dueBytes or dueOperations. An epoch with more than mostBytes or mostOperations has outgrown
	// the pattern of the scheme.
	dueBytes, dueOperations, mostBytes, mostOperations int
}

// Conditions are what a plan depends on besides the operations.
type Conditions struct {
	Costs  verbs.Costs
	Scheme Scheme
	// Direct reports that the target's memory is accessible by RDMA. Otherwise all operations go in messages.
	Direct bool
	// Atomics reports that the card executes accumulates, fetches and swaps, each of one word. They then always go
	// direct.
	Atomics bool
	// Unregistered returns how much longer it takes to move bytes of unregistered memory than of registered memory, in
	// nanoseconds. It is nil if all memory is registered.
	Unregistered func(bytes int) float64
	// Packet is the size of a message's packet in bytes.
	Packet int
}

// NewPlanner returns a Planner for the conditions.
func NewPlanner(c Conditions) *Planner {
	p := &Planner{base: c.Scheme, packs: c.Scheme.has(Pack | Defer), direct: c.Direct, atomics: c.Atomics, most: aggregate.Most(c.Packet)}
	p.packing = newPacking(&c.Costs, c.Unregistered, p.most)
	p.packing.atomics = c.Atomics
	// Starting costs the posts of the operations. Data on the wire for the time of startPosts posts hides that cost.
	// Two full messages gain nothing by waiting.
	p.startBytes, p.startOperations = defaultStart, 2*aggregate.MostWords(c.Packet)
	if bytes := int(c.Costs.Bandwidth * startPosts * c.Costs.Post.Seconds()); bytes > 0 {
		p.startBytes = bytes
	}
	p.use(c.Scheme, Pattern{})
	return p
}

// With returns a copy of the planner with scheme s for epochs of pattern of. For the zero Pattern, s is for all epochs.
// Operations that the conditions' scheme packs because their memory is not registered stay packed: registering it may
// cost more than a trial may lose.
func (p Planner) With(s Scheme, of Pattern) Planner {
	p.use(s, of)
	return p
}

// use sets the scheme, and when a queue is due.
func (p *Planner) use(s Scheme, of Pattern) {
	p.scheme = s
	p.mostBytes, p.mostOperations = math.MaxInt, math.MaxInt
	if s != p.base {
		p.mostBytes, p.mostOperations = of.most()
	}
	switch {
	case !s.has(Defer):
		p.dueBytes, p.dueOperations = 0, 0
	case s.has(Early):
		p.dueBytes, p.dueOperations = p.startBytes, min(p.startOperations, mostQueued)
	default:
		p.dueBytes, p.dueOperations = math.MaxInt, mostQueued
	}
	if p.mostBytes < p.dueBytes {
		p.dueBytes = p.mostBytes + 1
	}
	if p.mostOperations < p.dueOperations {
		p.dueOperations = p.mostOperations + 1
	}
}

// Outgrown returns a copy of the planner with the conditions' scheme, if the epoch has more operations or bytes than
// those of the pattern that the scheme is for. What pays in the epochs of a pattern may cost much in a larger one that
// comes unexpectedly.
func (p *Planner) Outgrown(q *Queue) (base Planner, outgrown bool) {
	if q.bytes+q.dropped.bytes <= p.mostBytes && q.count+q.dropped.operations <= p.mostOperations {
		return Planner{}, false
	}
	return p.With(p.base, Pattern{}), true
}

const (
	// startPosts is the number of posts whose time bounds an early start. defaultStart is the number of bytes to start
	// if the costs are unknown.
	startPosts   = 8
	defaultStart = 32 << 10
)

// Due reports whether the queue should be sent now although no call waits for it, or the epoch has outgrown the pattern
// of the scheme. Its caller then asks Outgrown, and if that is so, whether the queue is due by the planner it returns.
func (p *Planner) Due(q *Queue) bool { return q.bytes >= p.dueBytes || q.count >= p.dueOperations }

// Runs reports whether accumulates are to be queued in runs, by [Queue.Accumulate].
func (p *Planner) Runs() bool { return p.scheme.has(Merge | Defer) }

// Room returns the number of accumulates of a run that can be added until the queue is due, at least 1.
func (p *Planner) Room(q *Queue) int { return max(p.dueOperations-q.count, 1) }

// Share returns the cost of packing a put of n bytes as a fraction of the cost of the wait for direct puts. That wait
// is needed only if at least one put is direct. So if [End] follows, packing all puts pays while their shares add up to
// less than 1.
func (p *Planner) Share(n int) float64 { return p.packing.share(n) }

// Following is what follows the operations of a plan.
type Following uint8

const (
	// Nothing: nothing follows, or something whose cost does not depend on the plan.
	Nothing Following = iota
	// Message: a message to the target follows in any case.
	Message
	// End: a message follows, and only direct operations are waited for.
	End
	// Local: nothing follows, and only direct operations are waited for.
	Local
)

// Plan arranges the operations and stores the steps in into. Accumulates, fetches and swaps keep their order among each
// other. Each notification comes after every operation before it.
func (p *Planner) Plan(operations []Operation, following Following, into *Plan) {
	into.Steps = into.Steps[:0]
	var small limits
	switch {
	case !p.direct:
		small = limits{math.MaxInt, math.MaxInt}
	case p.scheme.has(Pack | Defer):
		small = p.packing.limits(operations, following)
	case p.packs:
		small.unregistered = p.packing.unregistered
	}
	if !p.scheme.has(GetsFirst | Defer) {
		p.inOrder(operations, small, into)
		return
	}
	// Notifications divide the operations into parts.
	for first := 0; first < len(operations); {
		end := first
		for end < len(operations) && operations[end].Kind != aggregate.Notify {
			end++
		}
		p.part(operations, first, end, small, into)
		for ; end < len(operations) && operations[end].Kind == aggregate.Notify; end++ {
			into.add(end, 1, true, 0)
		}
		first = end
	}
}

// part arranges the operations [first, end) in this order: packed reads, because the origin waits for them; direct
// operations; the accumulate family, which may be direct too; packed puts.
func (p *Planner) part(operations []Operation, first, end int, small limits, into *Plan) {
	var puts, direct, others int
	for i := first; i < end; i++ {
		switch o := &operations[i]; {
		case o.Kind == aggregate.Get && o.below(small):
			into.add(i, 1, true, o.Bytes)
		case o.Kind == aggregate.Get:
			direct++
		case o.Kind == aggregate.Put && o.below(small):
			puts++
		case o.Kind == aggregate.Put:
			direct++
		default:
			others++
		}
	}
	if direct > 0 {
		p.interleave(operations, first, end, small, into)
	}
	for i := first; others > 0; i++ {
		if o := &operations[i]; !o.moves() {
			others--
			into.add(i, 1, !p.atomics, o.Bytes)
		}
	}
	for i := first; puts > 0; i++ {
		o := &operations[i]
		if o.Kind != aggregate.Put || !o.below(small) {
			continue
		}
		count, bytes := p.merged(operations[i:end], small)
		into.add(i, count, true, bytes)
		puts -= count
		i += count - 1
	}
}

// interleave adds direct reads and writes: alternately, a read first, or all reads first.
func (p *Planner) interleave(operations []Operation, first, end int, small limits, into *Plan) {
	next := func(kind aggregate.Kind, from int) int {
		for from < end && (operations[from].Kind != kind || operations[from].below(small)) {
			from++
		}
		return from
	}
	get, put := next(aggregate.Get, first), next(aggregate.Put, first)
	for get < end || put < end {
		if get < end {
			into.add(get, 1, false, operations[get].Bytes)
			get = next(aggregate.Get, get+1)
		}
		if put < end && (get == end || p.scheme.has(Interleave)) {
			into.add(put, 1, false, operations[put].Bytes)
			put = next(aggregate.Put, put+1)
		}
	}
}

// inOrder adds the operations in program order.
func (p *Planner) inOrder(operations []Operation, small limits, into *Plan) {
	for i := 0; i < len(operations); i++ {
		o := &operations[i]
		packed := p.inMessage(o, small)
		count, bytes := 1, o.Bytes
		if packed && o.Kind == aggregate.Put {
			count, bytes = p.merged(operations[i:], small)
		}
		into.add(i, count, packed, bytes)
		i += count - 1
	}
}

// inMessage reports whether an operation goes in a message, given the limits of puts and gets.
func (p *Planner) inMessage(o *Operation, small limits) bool {
	if o.combines() {
		return !p.atomics
	}
	return !o.moves() || o.below(small)
}

// merged returns how many small puts at the front go as one, and the number of bytes of their range.
func (p *Planner) merged(operations []Operation, small limits) (count, bytes int) {
	base, bytes := operations[0].Offset, operations[0].Bytes
	if !p.scheme.has(Merge) || bytes > p.most {
		return 1, bytes
	}
	for count = 1; count < len(operations); count++ {
		o := &operations[count]
		// An Offset before that of the first put wraps to a very large number.
		from := o.Offset - base
		if o.Kind != aggregate.Put || !o.below(small) || from > uint64(bytes) || o.Bytes > p.most-int(from) {
			break
		}
		bytes = max(bytes, int(from)+o.Bytes)
	}
	return count, bytes
}
