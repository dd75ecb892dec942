package scheduler_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/aggregate"
	"github.com/onesided/rma/aggregate/reduce"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/scheduler"
	"github.com/onesided/rma/verbs"
)

// planned is a queue under some conditions, and its plan.
type planned struct {
	conditions scheduler.Conditions
	following  scheduler.Following
	queue      scheduler.Queue
	operations []scheduler.Operation
	steps      []scheduler.Step
}

// laws hold of every plan.
var laws = []struct {
	name  string
	holds func(*planned) bool
}{
	{"every operation is in the plan once", func(p *planned) bool {
		times := make([]int, len(p.operations))
		for _, i := range p.leaving() {
			times[i]++
		}
		return !slices.ContainsFunc(times, func(n int) bool { return n != 1 })
	}},
	{"accumulates, fetches and swaps keep their order", func(p *planned) bool {
		return slices.IsSorted(p.leavingOf(func(o *scheduler.Operation) bool { return !moves(o) && o.Kind != aggregate.Notify }))
	}},
	{"notifications are after what was before them, and keep their order", func(p *planned) bool {
		most := -1
		place := make([]int, len(p.operations))
		for at, i := range p.leaving() {
			place[i] = at
		}
		for i := range p.operations {
			if p.operations[i].Kind == aggregate.Notify && place[i] < most {
				return false
			}
			most = max(most, place[i])
		}
		return true
	}},
	{"what goes direct is a put, a get or an atomic by itself, and may", func(p *planned) bool {
		return p.all(func(s *scheduler.Step) bool {
			o := &p.operations[s.First]
			return s.Packed || p.conditions.Direct && s.Count == 1 && (moves(o) || p.conditions.Atomics && o.Kind != aggregate.Notify)
		})
	}},
	{"atomics go direct", func(p *planned) bool {
		return !p.conditions.Atomics || p.all(func(s *scheduler.Step) bool {
			o := &p.operations[s.First]
			return !s.Packed || moves(o) || o.Kind == aggregate.Notify
		})
	}},
	{"a step touches as much as its operations", func(p *planned) bool {
		return p.all(func(s *scheduler.Step) bool {
			bytes := 0
			for _, o := range p.of(s) {
				bytes = max(bytes, int(o.Offset-p.operations[s.First].Offset)+o.Bytes)
			}
			return s.Count > 0 && s.Bytes == bytes
		})
	}},
	{"what goes as one are puts without a gap that a message has room for", func(p *planned) bool {
		return p.all(func(s *scheduler.Step) bool {
			merged := p.of(s)
			if len(merged) == 1 {
				return true
			}
			first, next := merged[0].Offset, merged[0].Offset
			for _, o := range merged {
				if o.Kind != aggregate.Put || o.Offset < first || o.Offset > next {
					return false
				}
				next = max(next, o.Offset+uint64(o.Bytes))
			}
			shape := aggregate.Shape{Kind: aggregate.Put, Size: s.Bytes}
			return p.conditions.Scheme&scheduler.Merge != 0 && s.Bytes <= aggregate.MaxSize &&
				aggregate.HeaderBytes+shape.Packed() <= p.conditions.Packet
		})
	}},
	{"a put or get is packed only if all that touch less are", func(p *planned) bool {
		most, least := -1, 1<<62
		for i := range p.steps {
			s := &p.steps[i]
			for _, o := range p.of(s) {
				switch {
				case !moves(&o):
				case s.Packed:
					most = max(most, o.Bytes)
				default:
					least = min(least, o.Bytes)
				}
			}
		}
		return most < least
	}},
	{"in order, unless told otherwise", func(p *planned) bool {
		ordered := p.conditions.Scheme&scheduler.Defer == 0 || p.conditions.Scheme&scheduler.GetsFirst == 0
		return !ordered || slices.IsSorted(p.leaving())
	}},
	{"gets first, and direct ones alternating with puts", func(p *planned) bool {
		return p.conditions.Scheme&scheduler.Defer == 0 || p.conditions.Scheme&scheduler.GetsFirst == 0 ||
			!slices.ContainsFunc(p.parts(), func(part []scheduler.Step) bool { return !p.getsFirst(part) })
	}},
	{"puts and gets of a kind that go the same way keep their order between notifications", func(p *planned) bool {
		for _, part := range p.parts() {
			for _, kind := range []aggregate.Kind{aggregate.Put, aggregate.Get} {
				for _, packed := range []bool{false, true} {
					some := slices.DeleteFunc(slices.Clone(part), func(s scheduler.Step) bool {
						return s.Packed != packed || p.operations[s.First].Kind != kind
					})
					if !slices.IsSortedFunc(some, func(a, b scheduler.Step) int { return int(a.First - b.First) }) {
						return false
					}
				}
			}
		}
		return true
	}},
}

func moves(o *scheduler.Operation) bool { return o.Kind == aggregate.Put || o.Kind == aggregate.Get }

func (p *planned) of(s *scheduler.Step) []scheduler.Operation {
	return p.operations[s.First:][:s.Count]
}

func (p *planned) all(holds func(*scheduler.Step) bool) bool {
	return !slices.ContainsFunc(p.steps, func(s scheduler.Step) bool { return !holds(&s) })
}

// leaving are the places in the queue of what leaves, in that order.
func (p *planned) leaving() []int {
	return p.leavingOf(func(*scheduler.Operation) bool { return true })
}

func (p *planned) leavingOf(some func(*scheduler.Operation) bool) (order []int) {
	for _, s := range p.steps {
		for i := range int(s.Count) {
			if at := int(s.First) + i; some(&p.operations[at]) {
				order = append(order, at)
			}
		}
	}
	return order
}

// parts are the steps between notifications.
func (p *planned) parts() (parts [][]scheduler.Step) {
	from := 0
	for i := range p.steps {
		if p.operations[p.steps[i].First].Kind == aggregate.Notify {
			parts = append(parts, p.steps[from:i])
			from = i + 1
		}
	}
	return append(parts, p.steps[from:])
}

// getsFirst reports whether packed gets come first, then direct gets and puts, alternating as
// long as there are both, a get first, then the accumulate family, then packed puts.
func (p *planned) getsFirst(part []scheduler.Step) bool {
	group := func(s scheduler.Step) int {
		switch kind := p.operations[s.First].Kind; {
		case !s.Packed && moves(&p.operations[s.First]):
			return 1
		case kind == aggregate.Get:
			return 0
		case kind == aggregate.Put:
			return 3
		}
		return 2
	}
	if !slices.IsSortedFunc(part, func(a, b scheduler.Step) int { return group(a) - group(b) }) {
		return false
	}
	gets, puts := 0, 0
	alternate := p.conditions.Scheme&scheduler.Interleave != 0
	direct := slices.DeleteFunc(slices.Clone(part), func(s scheduler.Step) bool { return s.Packed || !moves(&p.operations[s.First]) })
	left := 0
	for _, s := range direct {
		if p.operations[s.First].Kind == aggregate.Get {
			left++
		}
	}
	for _, s := range direct {
		switch get := p.operations[s.First].Kind == aggregate.Get; {
		case get:
			gets, left = gets+1, left-1
		case left > 0 && (!alternate || gets != puts+1):
			return false
		default:
			puts++
		}
	}
	return true
}

// random is a queue under random conditions, with neighboring puts.
func random(r *rand.Rand) *planned {
	pick := func(most time.Duration) time.Duration { return time.Duration(r.Int64N(int64(most))) }
	p := &planned{
		conditions: scheduler.Conditions{
			Costs: verbs.Costs{
				Post: pick(5 * time.Microsecond), Gap: pick(5 * time.Microsecond), Serve: pick(20 * time.Microsecond),
				Bandwidth: 1e8 + 1e10*r.Float64(), CopyLatency: pick(time.Microsecond), CopyBandwidth: []float64{0, 1e9, 2e10}[r.IntN(3)],
			},
			Scheme: scheduler.Scheme(r.IntN(int(scheduler.All) + 1)), Direct: r.IntN(3) > 0, Packet: []int{64, 1001, 8191, 1 << 17}[r.IntN(4)],
		},
		following: scheduler.Following(r.IntN(int(scheduler.Local) + 1)),
	}
	p.conditions.Atomics = p.conditions.Direct && r.IntN(3) == 0
	if r.IntN(2) > 0 {
		p.conditions.Scheme |= scheduler.Defer | scheduler.GetsFirst
	}
	most := aggregate.Kind(2 + r.IntN(5))
	q := &p.queue
	for range r.IntN(40) {
		if most >= aggregate.Accumulate && r.IntN(6) == 0 {
			for range 1 + r.IntN(5) {
				q.Accumulate(reduce.Op(r.IntN(2)), reduce.Int32, 4, r.Uint64N(1<<40), r.Uint64())
			}
			continue
		}
		o := q.Add(1+aggregate.Kind(r.IntN(int(most))), 1+r.IntN(1<<r.IntN(18)))
		if last := len(q.Operations) - 2; last >= 0 && r.IntN(2) > 0 {
			before := &q.Operations[last]
			// After it, or anywhere from a byte before it on.
			o.Offset = before.Offset + uint64(before.Bytes)
			if r.IntN(2) > 0 {
				o.Offset = max(before.Offset, 1) - 1 + r.Uint64N(uint64(before.Bytes)+3)
			}
			if r.IntN(2) > 0 {
				o.Kind = before.Kind
			}
		} else {
			o.Offset = r.Uint64N(1 << 40)
		}
		if o.Kind == aggregate.Notify {
			o.Bytes = 0
		}
	}
	p.operations = q.Operations
	return p
}

// TestLaws plans random queues under random conditions.
func TestLaws(t *testing.T) {
	for seed := range testsize.Samples(t, 5000) {
		p := random(rand.New(rand.NewPCG(seed, 0)))
		before := slices.Clone(p.operations)
		var plan scheduler.Plan
		scheduler.NewPlanner(p.conditions).Plan(p.operations, p.following, &plan)
		p.steps = plan.Steps
		for _, law := range laws {
			if !law.holds(p) {
				t.Errorf("seed %d, %+v, followed by %v: not so that %s:\n%+v\n%s", seed, p.conditions, p.following, law.name, p.operations, written(&plan))
			}
		}
		require.Equal(t, before, p.operations)

		again := scheduler.Plan{Steps: slices.Repeat([]scheduler.Step{{First: 7, Count: 7}}, 5)}
		scheduler.NewPlanner(p.conditions).Plan(p.operations, p.following, &again)
		require.Equal(t, len(plan.Steps), len(again.Steps))
		require.True(t, slices.Equal(plan.Steps, again.Steps), "seed %d: %s, and then %s", seed, written(&plan), written(&again))
	}
}
