package oracle

import (
	"cmp"
	"math"
	"slices"

	"github.com/onesided/rma/aggregate/reduce"
	"github.com/onesided/rma/window"
)

// A stretch is a sequence of phases until one that is not loose: the phases between two examinations of all windows.
// For each part of each window it has the segments of elements that the same accesses touch.
type stretch struct {
	// first and last are the phases.
	first, last int
	// parts has a part for each window and rank.
	parts []part
}

// A part is what a stretch does to one rank's part of a window.
type part struct {
	window, rank int
	accesses     []access
	segments     []segment
	// epochs are the lock epochs that touch the part.
	epochs []lockEpoch
}

// An access is what a step does to a part.
type access struct {
	step *Step
	// phase and index are the place of the step. done is the index from which on later steps of the same member
	// follow the access.
	phase, index, done int
	// noticed is the index of its target's steps from which on the target knows of the access by a notification.
	noticed int
	// epoch is the lock epoch of the access, or -1.
	epoch int
}

const never = math.MaxInt

// A lockEpoch is an epoch between a lock and its unlock.
type lockEpoch struct {
	rank      int
	exclusive bool
	// lock is the step that begins the epoch.
	phase, lock int
}

// A touch is a range of elements that an access touches: from byte from of the part to before byte to. The first of
// them is operand number operand.
type touch struct {
	from, to, access, operand int
}

// A segment is a range of bytes of a part that the same touches cover.
type segment struct {
	from, to int
	kind     reduce.Kind
	cells    []cell
	// locked is set if exclusive locks order the accesses of several ranks.
	locked bool
	// commutes is set if every order of the accesses has the same outcome.
	commutes bool
}

// A cell is an access to a segment. The segment's first element is its operand number operand.
type cell struct {
	access, operand int
}

// stretches returns what a program does to windows. The steps must be legal by themselves.
func (p *Program) stretches() []stretch {
	var all []stretch
	for first := 0; first < len(p.Phases); {
		last := first
		for p.Phases[last].Loose && last+1 < len(p.Phases) {
			last++
		}
		all = append(all, p.stretch(first, last))
		first = last + 1
	}
	return all
}

func (p *Program) stretch(first, last int) stretch {
	s := stretch{first: first, last: last, parts: make([]part, len(p.Windows)*p.Ranks)}
	for i := range s.parts {
		s.parts[i].window, s.parts[i].rank = i/p.Ranks, i%p.Ranks
	}
	for phase := first; phase <= last; phase++ {
		p.collect(&s, phase)
	}
	for i := range s.parts {
		s.parts[i].divide()
	}
	return s
}

// collect gathers the accesses of a phase.
func (p *Program) collect(s *stretch, phase int) {
	steps := p.Phases[phase].Steps
	// open is the open lock epoch of each rank, by part.
	open := make([]int, p.Ranks*len(s.parts))
	for i := range open {
		open[i] = -1
	}
	for i := range steps {
		step := &steps[i]
		if step.Refused {
			continue
		}
		at := func(target int) (int, *part) {
			n := step.Window*p.Ranks + target
			return step.Rank*len(s.parts) + n, &s.parts[n]
		}
		begin := func(target int, exclusive bool) {
			o, t := at(target)
			open[o] = len(t.epochs)
			t.epochs = append(t.epochs, lockEpoch{step.Rank, exclusive, phase, i})
		}
		switch step.Call {
		case Lock:
			begin(step.Target, step.LockKind == window.Exclusive)
		case LockAll:
			for target := range p.Ranks {
				begin(target, false)
			}
		case Unlock:
			o, _ := at(step.Target)
			open[o] = -1
		case UnlockAll:
			for target := range p.Ranks {
				o, _ := at(target)
				open[o] = -1
			}
		default:
			if step.elements() > 0 {
				o, t := at(step.part())
				t.accesses = append(t.accesses, access{step: step, phase: phase, index: i, done: done(steps, i), noticed: noticed(steps, i), epoch: open[o]})
			}
		}
	}
}

// done returns the index from which on later steps of the same member follow step i.
func done(steps []Step, i int) int {
	s := &steps[i]
	if s.Call == Store || s.Call == Load {
		return i
	}
	var flushes []int
	for j := i + 1; j < len(steps); j++ {
		t := &steps[j]
		if t.Refused || t.Rank != s.Rank || t.Member != s.Member || t.Window != s.Window {
			continue
		}
		switch t.Call {
		case Flush, Unlock:
			if t.Target == s.Target {
				return j
			}
		case FlushAll, UnlockAll:
			return j
		case FlushLocal:
			if t.Target == s.Target && s.Call.reads() {
				return j
			}
		case FlushLocalAll:
			if s.Call.reads() {
				return j
			}
		case RFlush:
			if t.Target == s.Target {
				flushes = append(flushes, t.Request)
			}
		case Wait:
			if slices.Contains(flushes, t.Request) {
				return j
			}
			if s.Call.reads() && s.Call.requests() && t.Request == s.Request {
				return j
			}
		}
	}
	return never
}

// noticed returns the index of its target's step that has waited for the notification of step i.
func noticed(steps []Step, i int) int {
	s := &steps[i]
	if s.Call != PutNotify {
		return never
	}
	for j := range steps {
		t := &steps[j]
		if t.Call == WaitNotify && !t.Refused && t.Rank == s.Target && t.Window == s.Window && t.Slot == s.Slot {
			return j
		}
	}
	return never
}

// divide divides the touched bytes of a part into segments.
func (t *part) divide() {
	var touches []touch
	for i := range t.accesses {
		s := t.accesses[i].step
		size := s.Kind.Size()
		s.touches(func(at, n, operand int) {
			touches = append(touches, touch{at * size, (at + n) * size, i, operand})
		})
	}
	slices.SortStableFunc(touches, func(a, b touch) int { return cmp.Compare(a.from, b.from) })
	var active []touch
	for i, at := 0, 0; i < len(touches) || len(active) > 0; {
		if len(active) == 0 {
			at = touches[i].from
		}
		for i < len(touches) && touches[i].from == at {
			active = append(active, touches[i])
			i++
		}
		end := never
		if i < len(touches) {
			end = touches[i].from
		}
		for _, a := range active {
			end = min(end, a.to)
		}
		t.segments = append(t.segments, t.segment(at, end, active))
		active = slices.DeleteFunc(active, func(a touch) bool { return a.to == end })
		at = end
	}
}

// segment makes the segment of some touches.
func (t *part) segment(from, to int, active []touch) segment {
	g := segment{from: from, to: to, kind: t.accesses[active[0].access].step.Kind, cells: make([]cell, len(active))}
	for i, a := range active {
		g.cells[i] = cell{a.access, a.operand + (from-a.from)/t.accesses[a.access].step.Kind.Size()}
	}
	slices.SortStableFunc(g.cells, func(a, b cell) int { return cmp.Compare(a.access, b.access) })
	first := t.accesses[g.cells[0].access].step
	g.commutes = g.kind < reduce.Float32 && first.Op < window.Replace
	for _, c := range g.cells {
		s := t.accesses[c.access].step
		g.commutes = g.commutes && s.Call.combines() && !s.Call.reads() && s.Kind == g.kind && s.Op == first.Op
	}
	if len(t.epochs) == 0 {
		return g
	}
	for _, c := range g.cells {
		a := &t.accesses[c.access]
		for _, d := range g.cells {
			b := &t.accesses[d.access]
			if a.epoch >= 0 && b.epoch >= 0 && a.step.Rank != b.step.Rank && t.epochs[a.epoch].exclusive {
				g.locked = true
			}
		}
	}
	return g
}

// before reports whether access a takes effect before b in every execution.
func (p *Program) before(a, b *access) bool {
	switch {
	case a.phase != b.phase:
		return a.phase < b.phase
	case b.step.Rank == a.step.Target && b.step.Member == 0 && a.noticed < b.index:
		return true
	case a.step.Rank != b.step.Rank || a.step.Member != b.step.Member:
		return false
	}
	return a.done <= b.index || a.step == b.step ||
		a.index < b.index && a.step.Call.combines() && b.step.Call.combines() && !p.Windows[a.step.Window].Unordered
}
