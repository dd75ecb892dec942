package scheduler

import (
	"math"

	"github.com/onesided/rma/aggregate"
	"github.com/onesided/rma/verbs"
)

// A Step of a plan is the operations [First, First+Count) of the queue: one, or several
// puts that go as one. Those touch the window from the Offset of the first on, without a
// gap: who carries them out copies each to its place there in program order, so that the
// last of those to one place counts.
type Step struct {
	First, Count int32
	// Packed tells that they go in a message, Bytes of the window together. Else it is one
	// that goes direct, by RDMA.
	Packed bool
	Bytes  int
}

// A Plan is the steps of all operations of a queue, in the order in which they leave.
type Plan struct{ Steps []Step }

func (p *Plan) add(first, count int, packed bool, bytes int) {
	p.Steps = append(p.Steps, Step{int32(first), int32(count), packed, bytes})
}

// LastDirect is the last step that goes direct, -1 if there is none.
func (p *Plan) LastDirect() int {
	last := len(p.Steps) - 1
	for last >= 0 && p.Steps[last].Packed {
		last--
	}
	return last
}

// A Planner arranges operations for one target. It is a value that does not change.
type Planner struct {
	scheme Scheme
	// packs tells that the conditions' scheme packs.
	packs bool
	// direct tells that operations may go by RDMA at all, atomics that the accumulate family does.
	direct, atomics bool
	// most is how much one packed operation may touch, in bytes.
	most  int
	worth worth
	// start is how many bytes or operations are worth starting before the synchronization.
	startBytes, startOperations int
}

// Conditions are what a plan depends on but for the operations.
type Conditions struct {
	Costs  verbs.Costs
	Scheme Scheme
	// Direct tells that the target's memory can be reached by RDMA; else everything goes
	// in messages.
	Direct bool
	// Atomics tells that the card carries out accumulates, fetches and swaps, each of one word:
	// they go direct, and nothing else.
	Atomics bool
	// Unknown is how much longer it takes to move so many bytes that the card does not know than
	// others, in nanoseconds; nil where it knows all.
	Unknown func(bytes int) float64
	// Packet is how many bytes a message has room for.
	Packet int
}

// NewPlanner makes one.
func NewPlanner(c Conditions) *Planner {
	p := &Planner{scheme: c.Scheme, packs: c.Scheme.has(Pack | Defer), direct: c.Direct, atomics: c.Atomics, most: aggregate.Most(c.Packet)}
	p.worth = newWorth(&c.Costs, c.Unknown, p.most)
	p.worth.atomics = c.Atomics
	// To start is to post. What is on its way for as long as it takes to post some times
	// hides that; and two messages that are full gain nothing by waiting.
	p.startBytes, p.startOperations = defaultStart, 2*aggregate.MostWords(c.Packet)
	if bytes := int(c.Costs.Bandwidth * startPosts * c.Costs.Post.Seconds()); bytes > 0 {
		p.startBytes = bytes
	}
	return p
}

// With is the same but for the scheme. What the conditions' scheme packs because the card does not
// know it stays packed: to have it known may cost more than any trial should.
func (p Planner) With(s Scheme) Planner {
	p.scheme = s
	return p
}

const (
	// startPosts is how many times that is, defaultStart how many bytes are started where
	// the costs are unknown.
	startPosts   = 8
	defaultStart = 32 << 10
)

// Due tells whether what is queued should be sent now, although nobody waits for it.
func (p *Planner) Due(q *Queue) bool {
	if !p.scheme.has(Defer) {
		return true
	}
	return q.Full() || p.scheme.has(Early) && (q.bytes >= p.startBytes || q.count >= p.startOperations)
}

// Runs tells whether accumulates are to be queued in runs (Queue.Accumulate).
func (p *Planner) Runs() bool { return p.scheme.has(Merge | Defer) }

// Room is how many accumulates of a run can be added, or 1, until a queue is due.
func (p *Planner) Room(q *Queue) int {
	most := mostQueued
	if !p.scheme.has(Defer) {
		most = 0
	} else if p.scheme.has(Early) {
		most = min(most, p.startOperations)
	}
	return max(most-q.count, 1)
}

// Share returns the cost of packing a put of so many bytes, divided by what a wait for direct puts costs. Puts that are all
// packed need no such wait. So packing them, by [End], pays as long as their shares add up to less than 1.
func (p *Planner) Share(bytes int) float64 { return p.worth.share(bytes) }

// Behind is what comes behind the operations of a plan.
type Behind uint8

const (
	// Nothing, or what costs the same however they go.
	Nothing Behind = iota
	// Message: one goes to the target anyway.
	Message
	// End: so it does, and nothing is waited for but those that go direct.
	End
	// Local: nothing comes behind, and nothing is waited for but those that go direct.
	Local
)

// Plan arranges the operations. It keeps the order of accumulates, fetches and swaps among each other, and
// has each notification behind everything before it.
func (p *Planner) Plan(operations []Operation, behind Behind, into *Plan) {
	into.Steps = into.Steps[:0]
	var small limits
	switch {
	case !p.direct:
		small = limits{math.MaxInt, math.MaxInt}
	case p.scheme.has(Pack | Defer):
		small = p.worth.limits(operations, behind)
	case p.packs:
		small.unregistered = p.worth.unregistered
	}
	if !p.scheme.has(GetsFirst | Defer) {
		p.inOrder(operations, small, into)
		return
	}
	// Notifications part the operations.
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

// part arranges the operations [first, end): packed reads, which the origin waits for;
// direct ones; the accumulate family, which may be direct too; packed puts.
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
		p.takeTurns(operations, first, end, small, into)
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

// takeTurns adds direct reads and writes: in turns, a read first, or all reads first.
func (p *Planner) takeTurns(operations []Operation, first, end int, small limits, into *Plan) {
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

// inOrder adds the operations as they came.
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

// inMessage tells whether an operation goes in a message, as puts and gets below some limits do.
func (p *Planner) inMessage(o *Operation, small limits) bool {
	if o.combines() {
		return !p.atomics
	}
	return !o.moves() || o.below(small)
}

// merged tells how many small puts at the front go as one, and of how many bytes.
func (p *Planner) merged(operations []Operation, small limits) (count, bytes int) {
	base, bytes := operations[0].Offset, operations[0].Bytes
	if !p.scheme.has(Merge) || bytes > p.most {
		return 1, bytes
	}
	for count = 1; count < len(operations); count++ {
		o := &operations[count]
		// An Offset before the first's is a number far too large.
		from := o.Offset - base
		if o.Kind != aggregate.Put || !o.below(small) || from > uint64(bytes) || o.Bytes > p.most-int(from) {
			break
		}
		bytes = max(bytes, int(from)+o.Bytes)
	}
	return count, bytes
}
