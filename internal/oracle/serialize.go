package oracle

import (
	"fmt"
	"slices"
	"strings"
)

// Lock epochs of which some are exclusive happened one after the other, as far as they access the same elements. One
// order of them must explain all the segments of one part that exclusive locks order. Check has ensured that epochs
// which may overlap in time do not write what the other accesses.

// An undo is bytes to restore.
type undo struct {
	at  int
	was bits
	of  *segment
}

// A serialization looks for the order.
type serialization struct {
	*comparison
	// epochs are the epochs to be ordered. done marks those that have been.
	epochs []int
	done   []bool
	// now is the part as it would be after those that are done.
	now  []byte
	undo []undo
	// deepest is the greatest number of epochs that could be done, and wrong the difference found then.
	deepest int
	wrong   *OutcomeError
	tries   int
}

// serialize compares the segments that exclusive locks order.
func (c *comparison) serialize() error {
	epochs := c.serialized()
	if len(epochs) == 0 {
		return nil
	}
	z := &serialization{comparison: c, epochs: epochs, done: make([]bool, len(epochs)), now: slices.Clone(c.before), deepest: -1}
	c.plays = slices.Grow(c.plays[:0], 1)[:1]
	if z.explains(0) {
		if z.tries > z.most.tries {
			c.giveUp("lock epochs", z.most.tries)
		}
		return nil
	}
	texts := make([]string, len(epochs))
	for i, e := range epochs {
		l := &c.part.epochs[e]
		texts[i] = fmt.Sprintf("%q", c.program.Phases[l.phase].Steps[l.lock].String())
	}
	z.wrong.Allowed += ", in the order that explains most of the lock epochs that begin by " + strings.Join(texts, ", ")
	return z.wrong
}

// explains reports whether some order of the epochs that are not done explains the part. It also returns true if the
// search was given up.
func (z *serialization) explains(depth int) bool {
	if z.tries++; z.tries > z.most.tries {
		return true
	}
	if depth == len(z.epochs) {
		return z.complete(depth)
	}
	for i, e := range z.epochs {
		if z.done[i] || z.waits(e) {
			continue
		}
		mark := len(z.undo)
		z.done[i] = true
		if z.take(e, depth) && z.explains(depth+1) {
			return true
		}
		z.done[i] = false
		for len(z.undo) > mark {
			u := &z.undo[len(z.undo)-1]
			write(u.of.kind, z.now[u.at:], u.was)
			z.undo = z.undo[:len(z.undo)-1]
		}
	}
	return false
}

// waits reports whether an earlier epoch of the same rank is not done.
func (z *serialization) waits(epoch int) bool {
	for i, e := range z.epochs {
		if e < epoch && !z.done[i] && z.part.epochs[e].rank == z.part.epochs[epoch].rank {
			return true
		}
	}
	return false
}

// take does the accesses of an epoch, and reports whether they read what was recorded.
func (z *serialization) take(epoch, depth int) bool {
	for a := range z.accesses {
		if z.accesses[a].epoch != epoch {
			continue
		}
		for i := range z.segments {
			g := &z.segments[i]
			if !g.locked {
				continue
			}
			for _, l := range g.cells {
				if l.access == a && !z.takeCell(g, l, depth) {
					return false
				}
			}
		}
	}
	return true
}

func (z *serialization) takeCell(g *segment, l cell, depth int) bool {
	y, size := &z.plays[0], g.kind.Size()
	for at := g.from; at < g.to; at += size {
		z.play(y, l, (at-g.from)/size)
		was := read(g.kind, z.now[at:])
		if y.reads && !same(g.kind, y.read, was) {
			z.fail(depth, &OutcomeError{
				Step: y.access.step, Phase: y.access.phase, Window: z.window, Rank: z.rank, Element: at / size, Kind: g.kind,
				Got: show(g.kind, y.read), Allowed: show(g.kind, was),
			})
			return false
		}
		if now := y.apply(was); now != was {
			z.undo = append(z.undo, undo{at, was, g})
			write(g.kind, z.now[at:], now)
		}
	}
	return true
}

// complete reports whether the part is as it would be now.
func (z *serialization) complete(depth int) bool {
	for i := range z.segments {
		g := &z.segments[i]
		if !g.locked {
			continue
		}
		for at := g.from; at < g.to; at += g.kind.Size() {
			got, want := read(g.kind, z.after[at:]), read(g.kind, z.now[at:])
			if !same(g.kind, got, want) {
				z.fail(depth, &OutcomeError{
					Phase: z.last, Window: z.window, Rank: z.rank, Element: at / g.kind.Size(), Kind: g.kind,
					Got: show(g.kind, got), Allowed: show(g.kind, want),
				})
				return false
			}
		}
	}
	return true
}

// fail records the difference at which the search has come furthest.
func (z *serialization) fail(depth int, wrong *OutcomeError) {
	if depth > z.deepest {
		z.deepest, z.wrong = depth, wrong
	}
}
