package oracle

import (
	"slices"

	"github.com/onesided/rma/aggregate/reduce"
	"github.com/onesided/rma/window"
)

// Each place of a phase is accessed in one of these roles, so that the phase is legal:
//
//   - by one member
//   - by several that read
//   - by several that combine
//   - by its owner
//   - by several that put with notification, for which the owner waits
//   - by several under exclusive locks

// put draws an operation that writes without combining.
func (d *drawer) put(f *field, c *sequence, some bool) Step {
	calls := []Call{Put, Put, RPut, PutLayout}
	if d.p.Windows[f.win].Slots > 0 {
		calls = append(calls, PutNotify)
	}
	s := d.step(f, c, calls[d.IntN(len(calls))], some)
	switch s.Call {
	case PutLayout:
		d.lay(&s, PutLayout)
	case PutNotify:
		s.Slot = d.IntN(d.p.Windows[f.win].Slots)
	}
	return s
}

// get draws an operation that reads.
func (d *drawer) get(f *field, c *sequence) Step {
	s := d.step(f, c, [...]Call{Get, Get, RGet, GetLayout}[d.IntN(4)], true)
	if s.Call == GetLayout {
		d.lay(&s, GetLayout)
	}
	return s
}

// accumulate draws an operation of the accumulate family.
func (d *drawer) accumulate(f *field, c *sequence) Step {
	w := &d.p.Windows[f.win]
	s := d.step(f, c, [...]Call{Accumulate, Accumulate, RAccumulate, AccumulateLayout, AccumulateEach, GetAccumulate, RGetAccumulate, FetchAndOp, FetchAndOp, CompareAndSwap}[d.IntN(10)], true)
	if s.Op = d.ops[f.win]; !w.SameOp {
		s.Op = d.opOf(w, f.kind, d.viewed[f.win])
	} else if d.one(3) || f.kind != w.Kind {
		s.Op = window.NoOp
	}
	switch {
	case s.Call == CompareAndSwap || s.Call == FetchAndOp:
		s.Count = 0
		s.At = f.at + d.IntN(f.n)
		if s.Call == CompareAndSwap {
			s.Op = 0
			// Both have few values, so that it swaps now and then.
			s.Compare, s.Fill = int64(d.IntN(3)), int64(d.IntN(3))
		}
	case s.Call == AccumulateLayout && w.SingleElement:
		s.Call, s.Count = Accumulate, min(s.Count, 1)
	case s.Call == AccumulateLayout:
		d.lay(&s, AccumulateLayout)
	case s.Call == AccumulateEach:
		d.lay(&s, AccumulateEach)
	case w.SingleElement && s.Op != window.NoOp:
		s.Count = min(s.Count, 1)
	}
	return s
}

// flush returns a step that completes what a sequence has done on the field.
func flush(f *field, c *sequence) Step {
	return Step{Rank: c.rank, Member: c.member, Call: Flush, Window: f.win, Target: f.target}
}

func (d *drawer) add(c sequence) { d.sequences = append(d.sequences, c) }

// writer makes one member put and, if it can flush, do more after that.
func (d *drawer) writer(f *field, passive bool) {
	for _, c := range d.someone(f.win, f.target, 1) {
		c.steps = append(c.steps, d.put(f, &c, false))
		if passive && d.one(2) {
			c.steps = append(c.steps, flush(f, &c))
			if d.one(2) {
				c.steps = append(c.steps, d.get(f, &c))
			} else {
				c.steps = append(c.steps, d.accumulate(f, &c))
			}
		}
		d.add(c)
	}
}

// readers makes several members read.
func (d *drawer) readers(f *field) {
	for _, c := range d.someone(f.win, f.target, 1+d.IntN(4)) {
		for range 1 + d.IntN(2) {
			c.steps = append(c.steps, d.get(f, &c))
		}
		d.add(c)
	}
}

// combiners makes several members accumulate. Under locks these are all shared, because an exclusive one would have
// to order all of them.
func (d *drawer) combiners(f *field) {
	for _, c := range d.someone(f.win, f.target, 1+d.IntN(4)) {
		c.kind = window.Shared
		for range 1 + d.IntN(3) {
			c.steps = append(c.steps, d.accumulate(f, &c))
		}
		d.add(c)
	}
}

// owner makes the rank itself store to its part and load from it.
func (d *drawer) owner(f *field) {
	c := sequence{rank: f.target, own: true}
	for range 1 + d.IntN(3) {
		s := d.step(f, &c, Load, true)
		s.Target = 0
		if d.one(2) {
			s.Call = Store
		} else {
			s.Fill = 0
		}
		c.steps = append(c.steps, s)
	}
	d.add(c)
}

// notifiers makes several members put with notification to separate elements. The target reads these when it has
// waited for the notifications.
func (d *drawer) notifiers(f *field) {
	slots := d.p.Windows[f.win].Slots
	if slots == 0 {
		return
	}
	slot := d.IntN(slots)
	some := d.someone(f.win, f.target, 1+d.IntN(3))
	each := f.n / max(len(some), 1)
	if each == 0 {
		return
	}
	for i, c := range some {
		s := d.step(f, &c, PutNotify, false)
		s.At, s.Count, s.Slot = f.at+i*each, each, slot
		c.steps = []Step{s}
		d.add(c)
	}
	wait := Step{Rank: f.target, Call: WaitNotify, Window: f.win, Slot: slot}
	if len(some) > 0 && !slices.ContainsFunc(d.waits, func(s Step) bool {
		return s.Call == WaitNotify && s.Rank == wait.Rank && s.Window == wait.Window && s.Slot == slot
	}) {
		load := Step{Rank: f.target, Call: Load, Window: f.win, Kind: f.kind, At: f.at, Count: each * len(some)}
		d.waits = append(d.waits, wait, load)
	}
}

// storm makes several members make many calls, each on one or a few elements of its own. So queues fill and
// operations are sent before the synchronization.
func (d *drawer) storm(f *field) {
	some := d.someone(f.win, f.target, 1+d.IntN(3))
	each := f.n / max(len(some), 1)
	for i, c := range some {
		calls := [...][]Call{{Put}, {Put, Accumulate}, {Get, Put}, {Get}, {FetchAndOp, CompareAndSwap, Accumulate}}[d.IntN(5)]
		at, end := f.at+i*each, f.at+(i+1)*each
		for at < end && len(c.steps) < mostStorm {
			g := *f
			g.at, g.n = at, min(1+d.IntN(3), end-at)
			call := calls[d.IntN(len(calls))]
			var s Step
			if call.combines() {
				s = d.accumulate(&g, &c)
			} else {
				s = d.step(&g, &c, call, false)
			}
			c.steps = append(c.steps, s)
			at += g.n
		}
		if len(c.steps) > 0 {
			d.add(c)
		}
	}
}

// crowd makes several members accumulate to the same elements many times, by one operation whose order does not
// matter.
func (d *drawer) crowd(f *field) {
	op := window.Op(d.IntN(int(window.Replace)))
	if w := &d.p.Windows[f.win]; f.kind >= reduce.Float32 || w.SameOp || d.loose {
		return
	} else {
		if w.SingleElement {
			f.n = 1
		}
		if w.CardAtomics {
			op = window.Sum
		}
	}
	for _, c := range d.someone(f.win, f.target, 2+d.IntN(3)) {
		c.kind = window.Shared
		for range mostCrowd {
			s := d.step(f, &c, Accumulate, true)
			s.Op = op
			c.steps = append(c.steps, s)
		}
		d.add(c)
		d.crowded = true
	}
}

// mixer makes one member do any operations, with flushes between them.
func (d *drawer) mixer(f *field) {
	for _, c := range d.someone(f.win, f.target, 1) {
		c.steps = d.mixed(f, &c)
		d.add(c)
	}
}

func (d *drawer) mixed(f *field, c *sequence) (steps []Step) {
	for i := range 2 + d.IntN(3) {
		if i > 0 {
			steps = append(steps, flush(f, c))
		}
		switch d.IntN(3) {
		case 0:
			steps = append(steps, d.put(f, c, true))
		case 1:
			steps = append(steps, d.get(f, c))
		default:
			steps = append(steps, d.accumulate(f, c))
		}
	}
	return steps
}

// excluders makes several members do any operations under exclusive locks, and some read under shared ones.
func (d *drawer) excluders(f *field) {
	for _, c := range d.someone(f.win, f.target, 2+d.IntN(2)) {
		c.kind = window.Exclusive
		if d.one(4) {
			c.kind = window.Shared
			c.steps = []Step{d.get(f, &c)}
		} else {
			c.steps = d.mixed(f, &c)
		}
		d.add(c)
	}
}
