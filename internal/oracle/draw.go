package oracle

import (
	"math/rand/v2"
	"slices"

	"github.com/onesided/rma/aggregate/reduce"
	"github.com/onesided/rma/window"
)

// Limits bound what Draw draws. A zero field is drawn, too.
type Limits struct {
	// Ranks is the number of ranks of the program.
	Ranks int
	// Windows and Phases are the greatest numbers of windows and phases. Places is the greatest number of places of
	// each window that a phase accesses.
	Windows, Phases, Places int
	// Elements is the number of elements of the windows on each rank.
	Elements int
	// CardAtomics allows windows with that option.
	CardAtomics bool
}

// The limits for fields that are 0.
const (
	drawnRanks   = 5
	drawnWindows = 3
	drawnPhases  = 6
	drawnPlaces  = 5
	largePlace   = 1 << 14
	// mostStorm is the greatest number of calls of a member in a storm.
	mostStorm = 150
	// mostCrowd is the greatest number of accumulates of a member of a crowd.
	mostCrowd = 40
)

// Draw draws a legal program. It depends on its arguments only.
func Draw(seed uint64, l Limits) *Program {
	d := &drawer{Rand: rand.New(rand.NewPCG(seed, 0x0a11)), p: &Program{Ranks: l.Ranks}}
	if l.Ranks == 0 {
		d.p.Ranks = 2 + d.IntN(drawnRanks-1)
	}
	d.places, d.elements, d.cards = or(l.Places, drawnPlaces), l.Elements, l.CardAtomics
	for range 1 + d.IntN(or(l.Windows, drawnWindows)) {
		d.window()
	}
	d.fenced, d.unsettled = make([]bool, len(d.p.Windows)), make([]Mode, len(d.p.Windows))
	phases := 1 + d.IntN(or(l.Phases, drawnPhases))
	for i := range phases {
		d.phase(i == phases-1)
	}
	return d.p
}

func or(given, otherwise int) int {
	if given > 0 {
		return given
	}
	return otherwise
}

// A drawer draws a program.
type drawer struct {
	*rand.Rand
	p                *Program
	places, elements int
	// cards is set if windows are made with CardAtomics.
	cards bool
	// viewed marks the windows that are viewed as other types. ops are the operations of those made with SameOp.
	viewed []bool
	ops    []window.Op
	// fenced marks the windows with an open epoch of Fence. unsettled is as in checker.
	fenced    []bool
	unsettled []Mode
	// loose is set if the previous phase is loose.
	loose    bool
	requests int

	// The current phase: its sequences, the number of members of ranks, and waits for notifications with the loads that
	// follow them.
	phaseOf *Phase
	// fields are those of the phase, before those of the previous loose phase. Accessing these again shows whether
	// the synchronization separates the phases.
	fields, before []field
	sequences      []sequence
	members        int
	// crowded is set if elements have so many accesses that no others may come before the next examination.
	crowded bool
	waits   []Step
}

// A sequence has the steps of one member of a rank on one part.
type sequence struct {
	rank, member int
	// kind is the lock that the sequence needs; 0 allows either. A sequence on the rank's own memory needs none.
	kind  window.LockKind
	own   bool
	steps []Step
}

func (d *drawer) one(in int) bool { return d.IntN(in) == 0 }

// window draws a window.
func (d *drawer) window() {
	w := Window{
		Kind:   reduce.Kind(d.IntN(int(reduce.Kinds))),
		Create: d.one(4), SingleElement: d.one(8), SameOp: d.one(8), Unordered: d.one(8), Immediate: d.one(8),
	}
	if !d.one(4) {
		w.Slots = 1 + d.IntN(3)
	}
	viewed := d.one(3) && (!w.Create || w.Kind.Size() == 8)
	if d.cards && !d.one(4) {
		w.CardAtomics, w.Kind, viewed = true, [2]reduce.Kind{reduce.Int64, reduce.Uint64}[d.IntN(2)], false
	}
	most := 8 + d.IntN(120)
	switch {
	case d.one(40):
		// More than a message or an eager buffer has room for.
		most = (64<<10)/w.Kind.Size() + d.IntN(20_000)
	case d.one(80):
		// Enough for accumulates to be held back.
		most = (1<<20)/w.Kind.Size() + 16
	}
	w.Counts = make([]int, d.p.Ranks)
	for rank := range w.Counts {
		count := most
		switch {
		case d.elements > 0:
			count = d.elements
		case d.one(12):
			count = 0
		case d.one(4):
			count = 1 + d.IntN(most)
		}
		if viewed {
			count = (count + 15) &^ 15
		}
		w.Counts[rank] = count
	}
	d.p.Windows = append(d.p.Windows, w)
	d.viewed = append(d.viewed, viewed)
	d.ops = append(d.ops, d.opOf(&w, w.Kind, viewed))
}

// anyOp draws an operation of the accumulate family. The contents of a window that is viewed as several types may be
// NaN, or their rounding may depend on the order.
func (d *drawer) anyOp(kind reduce.Kind, viewed bool) window.Op {
	if viewed && kind >= reduce.Float32 {
		return [2]window.Op{window.Replace, window.NoOp}[d.IntN(2)]
	}
	for {
		if op := window.Op(d.IntN(int(window.NoOp) + 1)); reduce.Supported(kind, op) == nil {
			return op
		}
	}
}

// opOf is anyOp for a window that may not allow all operations.
func (d *drawer) opOf(w *Window, kind reduce.Kind, viewed bool) window.Op {
	if w.CardAtomics {
		return [3]window.Op{window.Sum, window.Sum, window.NoOp}[d.IntN(3)]
	}
	return d.anyOp(kind, viewed)
}

// phase draws a phase.
func (d *drawer) phase(last bool) {
	f := Phase{Syncs: make([]Sync, len(d.p.Windows)), Hasty: d.one(4)}
	if d.before = nil; d.loose {
		d.before = d.fields
	}
	d.fields = nil
	d.phaseOf, d.sequences, d.waits, d.members, d.crowded = &f, nil, nil, 1, false
	if d.one(4) {
		d.members = 2 + d.IntN(2)
	}
	busy := false
	for win := range f.Syncs {
		d.sync(win, &f.Syncs[win])
		busy = busy || f.Syncs[win].Mode != Idle
	}
	if !busy {
		f.Syncs[0] = Sync{Mode: Fenced, NoSucceed: true}
	}
	for win := range f.Syncs {
		if f.Syncs[win].Mode != Idle {
			for range 1 + d.IntN(d.places) {
				d.place(win)
			}
		}
	}
	d.assemble()
	// Between two examinations an element is accessed as one type, and exclusive locks order only accesses of one
	// phase.
	f.Loose = !last && !d.crowded && d.one(3) && !slices.ContainsFunc(f.Steps, func(s Step) bool {
		return !s.Refused && (s.LockKind == window.Exclusive || s.elements() > 0 && s.Kind != d.p.Windows[s.Window].Kind)
	})
	d.loose = f.Loose
	for win := range f.Syncs {
		y := &f.Syncs[win]
		switch y.Mode {
		case Fenced:
			d.fenced[win], d.unsettled[win] = !y.NoSucceed, Idle
		case Locked, AllLocked:
			d.unsettled[win] = Locked
		case Started:
			d.unsettled[win] = max(d.unsettled[win], Started)
		}
		if !f.Loose {
			d.unsettled[win] = Idle
		}
	}
	d.p.Phases = append(d.p.Phases, f)
}

// sync draws how a phase synchronizes a window.
func (d *drawer) sync(win int, y *Sync) {
	y.Mode = [...]Mode{Idle, Fenced, Fenced, Started, Started, Locked, Locked, Locked, AllLocked, AllLocked}[d.IntN(10)]
	switch {
	case d.fenced[win] && y.Mode != Idle, d.unsettled[win] == Locked && y.Mode != Idle:
		y.Mode = Fenced
	case d.unsettled[win] == Started && (y.Mode == Locked || y.Mode == AllLocked):
		y.Mode = Started
	}
	switch y.Mode {
	case Fenced:
		y.NoPrecede, y.NoSucceed, y.Assert = !d.fenced[win] && d.one(2), d.one(2), d.one(2)
	case AllLocked:
		y.Assert = d.one(2)
	case Started:
		y.Targets, y.Test = make([][]int, d.p.Ranks), d.one(3)
		for rank := range y.Targets {
			if !d.one(5) {
				y.Targets[rank] = append([]int{}, d.Perm(d.p.Ranks)[:d.IntN(d.p.Ranks+1)]...)
				slices.Sort(y.Targets[rank])
			}
		}
	}
}

// someone draws at most n members that may operate on a part.
func (d *drawer) someone(win, target, n int) []sequence {
	y := &d.phaseOf.Syncs[win]
	var some []sequence
	for _, rank := range d.Perm(d.p.Ranks) {
		if y.Mode == Started && (y.Targets[rank] == nil || !slices.Contains(y.Targets[rank], target)) {
			continue
		}
		member := 0
		if y.Mode != Locked {
			member = d.IntN(d.members)
		}
		some = append(some, sequence{rank: rank, member: member})
		if y.Mode != Locked && member > 0 && d.one(2) {
			some = append(some, sequence{rank: rank})
		}
	}
	return some[:min(n, len(some))]
}

// A field is a range of elements of one part that a phase accesses as one type.
type field struct {
	win, target, at, n int
	kind               reduce.Kind
}

// place draws a place of a window that nothing accesses yet in the phase, and sequences that access it.
func (d *drawer) place(win int) {
	w := &d.p.Windows[win]
	f := field{win: win, target: d.IntN(d.p.Ranks), kind: w.Kind}
	if d.viewed[win] && !d.loose && d.one(2) {
		f.kind = reduce.Kind(d.IntN(int(reduce.Kinds)))
		if w.Create && f.kind.Size() > w.Kind.Size() {
			f.kind = w.Kind
		}
	}
	room := w.Counts[f.target] * w.Kind.Size() / f.kind.Size()
	if room == 0 {
		return
	}
	f.n = 1 + d.IntN(min(room, 12))
	if d.one(5) {
		f.n = 1 + d.IntN(min(room, largePlace))
	}
	f.at = d.IntN(room - f.n + 1)
	again := false
	if i := slices.IndexFunc(d.before, func(b field) bool { return b.win == win && b.kind == w.Kind }); i >= 0 && d.one(2) {
		// Once more is enough: the number of accesses to an element between two examinations is limited.
		f, again = d.before[i], true
		d.before = slices.Delete(d.before, i, i+1)
		room = w.Counts[f.target]
	}
	if !d.free(&f) {
		return
	}
	if !again {
		d.fields = append(d.fields, f)
	}
	mode := d.phaseOf.Syncs[win].Mode
	passive := mode == Locked || mode == AllLocked
	switch role := d.IntN(10); {
	case role < 2:
		d.writer(&f, passive)
	case !again && d.one(40):
		// A storm needs room for many calls.
		if f.n = min(room-f.at, 500); d.free(&f) {
			d.storm(&f)
		}
	case !again && d.one(40):
		if f.n = min(room-f.at, 300); d.free(&f) {
			d.crowd(&f)
		}
	case role < 3:
		d.readers(&f)
	case role < 6:
		d.combiners(&f)
	case role < 7:
		d.owner(&f)
	case role < 8:
		d.notifiers(&f)
	case mode == Locked && !d.loose:
		d.excluders(&f)
	case passive:
		d.mixer(&f)
	default:
		d.writer(&f, passive)
	}
}

// free reports whether no sequence of the phase accesses bytes of the field.
func (d *drawer) free(f *field) bool {
	from, to := f.at*f.kind.Size(), (f.at+f.n)*f.kind.Size()
	overlaps := func(s *Step) bool {
		size, found := s.Kind.Size(), false
		if s.Window != f.win || s.part() != f.target {
			return false
		}
		s.touches(func(at, n, _ int) { found = found || at*size < to && from < (at+n)*size })
		return found
	}
	for i := range d.sequences {
		for j := range d.sequences[i].steps {
			if overlaps(&d.sequences[i].steps[j]) {
				return false
			}
		}
	}
	return !slices.ContainsFunc(d.waits, func(s Step) bool { return overlaps(&s) })
}

// step returns a step of an operation on all of the field or, if some is true, on a part of it.
func (d *drawer) step(f *field, c *sequence, call Call, some bool) Step {
	s := Step{Rank: c.rank, Member: c.member, Call: call, Window: f.win, Kind: f.kind, Target: f.target, At: f.at, Count: f.n, Fill: int64(d.IntN(100))}
	if some && d.one(3) {
		s.Count = d.IntN(f.n + 1)
		s.At += d.IntN(f.n - s.Count + 1)
	}
	if call.requests() {
		d.requests++
		s.Request = d.requests
	}
	return s
}

// lay makes a step one with layouts, within what it accesses.
func (d *drawer) lay(s *Step, call Call) {
	s.Call, s.Request = call, 0
	n := s.Count
	s.Count = 0
	s.To = d.shape(n)
	if elements := s.To.elements(); call == AccumulateEach || d.one(2) {
		s.From = Shape{Blocks: 1, Length: elements, Stride: elements}
	} else {
		// The buffer has a gap after each element.
		s.From = Shape{Blocks: elements, Length: 1, Stride: 2}
	}
}

// shape draws a shape within n elements that does not overlap itself.
func (d *drawer) shape(n int) Shape {
	if d.one(3) {
		var index []window.Block
		for at := 0; at < n && len(index) < 6; {
			length := 1 + d.IntN(min(n-at, 5))
			index = append(index, window.Block{Offset: at, Length: length})
			at += length + d.IntN(4)
		}
		d.Shuffle(len(index), func(i, j int) { index[i], index[j] = index[j], index[i] })
		if index != nil {
			return Shape{Index: index}
		}
	}
	length := min(1+d.IntN(4), n)
	stride := length + d.IntN(4)
	blocks := 0
	if length > 0 {
		blocks = min(1+(n-length)/stride, 40)
	}
	return Shape{Blocks: blocks, Length: length, Stride: stride}
}
