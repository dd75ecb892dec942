package oracle

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/onesided/rma/aggregate/reduce"
)

// A record holds the results of a run of a program.
type record struct {
	// results has what each step has read, by phase and step, or nil if it reads nothing.
	results [][][]byte
	// parts has the contents of each part after each stretch, by stretch, window and rank.
	parts [][][]byte
}

// An OutcomeError reports an outcome that the model does not allow.
type OutcomeError struct {
	// Step is the step that has read it, or nil for the contents of memory after Phase.
	Step  *Step
	Phase int
	// Element, of Kind, is an element of Rank's part of the window.
	Window, Rank, Element int
	Kind                  reduce.Kind
	// Got is the outcome, and Allowed what the model allows.
	Got, Allowed string
}

func (e *OutcomeError) Error() string {
	what := "its contents"
	if e.Step != nil {
		what = fmt.Sprintf("what rank %d read by %q", e.Step.Rank, e.Step.String())
	}
	return fmt.Sprintf("oracle: phase %d: element %d (%v) of rank %d in window %d: %s: got %s, allowed %s", e.Phase, e.Element, e.Kind, e.Rank, e.Window, what, e.Got, e.Allowed)
}

// ErrUndecided reports that a search was given up, because too many orders of accesses could explain an outcome. No
// order was found, which does not mean that there is none.
var ErrUndecided = errors.New("neither explained nor refuted")

// judge compares the results of a run with what the model allows, and returns the first difference. It returns
// ErrUndecided only if there is none.
func (p *Program) judge(r *record) error {
	return p.judgeWithin(r, bounds{places: 1 << 20, tries: 1 << 17})
}

// bounds bound the searches for orders. places bounds the search over accesses of an element, tries that over lock
// epochs.
type bounds struct{ places, tries int }

func (p *Program) judgeWithin(r *record, most bounds) error {
	var undecided error
	before := make([][]byte, len(p.Windows)*p.Ranks)
	for i := range before {
		w := &p.Windows[i/p.Ranks]
		before[i] = make([]byte, w.Counts[i%p.Ranks]*w.Kind.Size())
	}
	for i, s := range p.stretches() {
		for j := range s.parts {
			c := comparison{program: p, part: &s.parts[j], record: r, most: most, last: s.last, before: before[j], after: r.parts[i][j]}
			if err := c.compare(); err != nil {
				return err
			}
			undecided = cmp.Or(undecided, c.undecided)
		}
		before = r.parts[i]
	}
	return undecided
}

// A comparison compares one part after a stretch with its contents before.
type comparison struct {
	program *Program
	*part
	record        *record
	most          bounds
	last          int
	before, after []byte
	// plays are the accesses of the current element.
	plays []play
	// undecided describes the first search that was given up.
	undecided error
}

// giveUp records that a search was given up.
func (c *comparison) giveUp(at string, bound int) {
	if c.undecided == nil {
		c.undecided = fmt.Errorf("oracle: phase %d: %s of rank %d in window %d: %w after %d steps of the search", c.last, at, c.rank, c.window, ErrUndecided, bound)
	}
}

// A play is an access to an element.
type play struct {
	access        *access
	with, compare bits
	// read is what the access has read, if reads is set.
	read  bits
	reads bool
	// earlier has the plays that precede this one, one bit each.
	earlier uint32
}

// apply returns the element after the play.
func (y *play) apply(was bits) bits {
	s := y.access.step
	switch {
	case s.Call == CompareAndSwap:
		if was == y.compare {
			return y.with
		}
		return was
	case s.Call.combines():
		return combine(s.Kind, s.Op, was, y.with)
	case s.Call.reads():
		return was
	}
	return y.with
}

func (c *comparison) compare() error {
	at := 0
	for i := range c.segments {
		g := &c.segments[i]
		if err := c.untouched(at, g.from); err != nil {
			return err
		}
		if !g.locked {
			if err := c.segment(g); err != nil {
				return err
			}
		}
		at = g.to
	}
	if err := c.untouched(at, len(c.after)); err != nil {
		return err
	}
	return c.serialize()
}

// untouched compares bytes that nothing accesses.
func (c *comparison) untouched(from, to int) error {
	if slices.Equal(c.before[from:to], c.after[from:to]) {
		return nil
	}
	kind := c.program.Windows[c.window].Kind
	for i := from; i < to; i++ {
		if c.before[i] != c.after[i] {
			at := i / kind.Size() * kind.Size()
			return &OutcomeError{
				Phase: c.last, Window: c.window, Rank: c.rank, Element: at / kind.Size(), Kind: kind,
				Got: show(kind, read(kind, c.after[at:])), Allowed: show(kind, read(kind, c.before[at:])) + ", because nothing writes to it",
			}
		}
	}
	return nil
}

// play fills the play of a cell, for element n of its segment.
func (c *comparison) play(y *play, l cell, n int) {
	a := &c.accesses[l.access]
	s := a.step
	y.access, y.reads = a, s.Call.reads()
	if y.reads {
		y.read = read(s.Kind, c.record.results[a.phase][a.index][(l.operand+n)*s.Kind.Size():])
	}
	if s.Call != Get && s.Call != RGet && s.Call != GetLayout && s.Call != Load {
		y.with = operand(s, l.operand+n)
	}
	if s.Call == CompareAndSwap {
		y.compare = number(s.Kind, s.Compare)
	}
}

// segment compares a segment element by element. Some order of its accesses must explain what was read and what is in
// memory.
func (c *comparison) segment(g *segment) error {
	c.plays = slices.Grow(c.plays[:0], len(g.cells))[:len(g.cells)]
	for j, l := range g.cells {
		c.plays[j].earlier = 0
		for k, m := range g.cells {
			if j != k && !g.commutes && c.program.before(&c.accesses[m.access], &c.accesses[l.access]) && (l.access != m.access || k < j) {
				c.plays[j].earlier |= 1 << k
			}
		}
	}
	size := g.kind.Size()
	for at := g.from; at < g.to; at += size {
		for j, l := range g.cells {
			c.play(&c.plays[j], l, (at-g.from)/size)
		}
		before, after := read(g.kind, c.before[at:]), read(g.kind, c.after[at:])
		if c.inTurn(g.kind, before, after) {
			continue
		}
		search := search{kind: g.kind, plays: c.plays, after: after, most: c.most.places, seen: map[place]bool{}}
		if !g.commutes && len(g.cells) > 1 && search.explains(0, before) {
			if search.givenUp {
				c.giveUp(fmt.Sprintf("element %d (%v)", at/size, g.kind), c.most.places)
			}
			continue
		}
		return c.describe(g, at, before, after)
	}
	return nil
}

// inTurn reports whether the accesses in the order of the program's text explain an element.
func (c *comparison) inTurn(kind reduce.Kind, v, after bits) bool {
	done := uint32(0)
	for j := range c.plays {
		y := &c.plays[j]
		if y.reads && !same(kind, y.read, v) || y.earlier&^done != 0 {
			return false
		}
		v = y.apply(v)
		done |= 1 << j
	}
	return same(kind, v, after)
}

// A place is a state that a search has visited: the plays that are done, and the element after them.
type place struct {
	done  uint32
	value bits
}

// A search looks for an order of plays that explains an element.
type search struct {
	kind  reduce.Kind
	plays []play
	after bits
	seen  map[place]bool
	// most bounds the number of places. givenUp is set if the search would have visited more.
	most    int
	givenUp bool
}

// explains reports whether some order of the plays that are not done explains the element, whose value is v. It also
// returns true if the search was given up.
func (f *search) explains(done uint32, v bits) bool {
	if done == 1<<len(f.plays)-1 {
		return same(f.kind, v, f.after)
	}
	if here := (place{done, v}); f.seen[here] {
		return false
	} else if len(f.seen) < f.most {
		f.seen[here] = true
	} else {
		f.givenUp = true
		return true
	}
	for j := range f.plays {
		y := &f.plays[j]
		if done&(1<<j) == 0 && y.earlier&^done == 0 && (!y.reads || same(f.kind, y.read, v)) && f.explains(done|1<<j, y.apply(v)) {
			return true
		}
	}
	return false
}

// visit goes through all orders. It returns for each play the values that it may read, and last those that the
// element may finally have.
func (f *search) visit(done uint32, v bits, values [][]bits) {
	here := place{done, v}
	if f.seen[here] || len(f.seen) >= f.most {
		return
	}
	f.seen[here] = true
	add := func(i int) {
		if !slices.Contains(values[i], v) {
			values[i] = append(values[i], v)
		}
	}
	if done == 1<<len(f.plays)-1 {
		add(len(f.plays))
	}
	for j := range f.plays {
		if done&(1<<j) == 0 && f.plays[j].earlier&^done == 0 {
			add(j)
			f.visit(done|1<<j, f.plays[j].apply(v), values)
		}
	}
}

// describe returns the error of an element that no order of its accesses explains.
func (c *comparison) describe(g *segment, at int, before, after bits) error {
	if g.commutes {
		allowed := before
		for j := range c.plays {
			allowed = c.plays[j].apply(allowed)
		}
		return &OutcomeError{
			Phase: c.last, Window: c.window, Rank: c.rank, Element: at / g.kind.Size(), Kind: g.kind,
			Got: show(g.kind, after), Allowed: fmt.Sprintf("%s, because %d accumulates add up to that", show(g.kind, allowed), len(c.plays)),
		}
	}
	values := make([][]bits, len(c.plays)+1)
	visit := search{kind: g.kind, plays: c.plays, most: c.most.places, seen: map[place]bool{}}
	visit.visit(0, before, values)
	e := &OutcomeError{Phase: c.last, Window: c.window, Rank: c.rank, Element: at / g.kind.Size(), Kind: g.kind}
	allowed := func(got bits, values []bits) bool {
		return slices.ContainsFunc(values, func(v bits) bool { return same(g.kind, v, got) })
	}
	for j := range c.plays {
		if y := &c.plays[j]; y.reads && !allowed(y.read, values[j]) {
			e.Step, e.Phase, e.Got, e.Allowed = y.access.step, y.access.phase, show(g.kind, y.read), showAll(g.kind, values[j])
			return e
		}
	}
	e.Got, e.Allowed = show(g.kind, after), showAll(g.kind, values[len(c.plays)])
	if !allowed(after, values[len(c.plays)]) {
		return e
	}
	for j := range c.plays {
		if y := &c.plays[j]; y.reads {
			e.Got += fmt.Sprintf(" with %s read by %q", show(g.kind, y.read), y.access.step.String())
		}
	}
	e.Allowed = "each of these by itself, but no order of the accesses gives all of them"
	return e
}

// mostShown is the number of values that an error lists.
const mostShown = 12

func showAll(kind reduce.Kind, values []bits) string {
	texts := make([]string, 0, len(values))
	for _, v := range values {
		if len(texts) == mostShown {
			texts = append(texts, "…")
			break
		}
		texts = append(texts, show(kind, v))
	}
	return strings.Join(texts, " or ")
}
