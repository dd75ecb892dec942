package shadow

import (
	"github.com/onesided/rma/aggregate/reduce"
	"github.com/onesided/rma/world"
)

// A Window is a *window.Window.
type Window[T reduce.Element] interface {
	World() *world.World
	Len(rank int) int
	Local() []T
	Put(origin []T, target, displacement int) error
	Get(result []T, target, displacement int) error
	Accumulate(op reduce.Op, origin []T, target, displacement int) error
}

// A Pair is a window and this rank's plain copy of it. It may be used by one goroutine at a time.
type Pair[T reduce.Element] struct {
	win   Window[T]
	copy  *Memory[T]
	reads []read[T]
}

// A read is a Get of this rank.
type read[T reduce.Element] struct {
	target, displacement int
	got, want            []T
}

// Of returns the pair of a window whose memory is zero on all ranks.
func Of[T reduce.Element](win Window[T]) *Pair[T] {
	var lengths []int
	for rank := range win.World().Size() {
		lengths = append(lengths, win.Len(rank))
	}
	return &Pair[T]{win: win, copy: NewMemory[T](lengths...)}
}

// isMine reports whether rank is this rank.
func (p *Pair[T]) isMine(rank int) bool { return p.win.World().Rank() == rank }

// Memory returns the copy.
func (p *Pair[T]) Memory() *Memory[T] { return p.copy }

// Store makes a rank write into its own memory.
func (p *Pair[T]) Store(rank int, values []T, displacement int) error {
	if err := p.copy.Put(values, rank, displacement); err != nil || !p.isMine(rank) {
		return err
	}
	copy(p.win.Local()[displacement:], values)
	return nil
}

// Put applies a Put of rank from. The origin must not change until the window has completed it.
func (p *Pair[T]) Put(from int, origin []T, target, displacement int) error {
	if err := p.copy.Put(origin, target, displacement); err != nil || !p.isMine(from) {
		return err
	}
	return p.win.Put(origin, target, displacement)
}

// Accumulate applies an Accumulate of rank from. The origin must not change until the window has completed it.
func (p *Pair[T]) Accumulate(from int, op reduce.Op, origin []T, target, displacement int) error {
	if err := p.copy.Accumulate(op, origin, target, displacement); err != nil || !p.isMine(from) {
		return err
	}
	return p.win.Accumulate(op, origin, target, displacement)
}

// Get applies a Get of n elements by rank from. Check compares the result.
func (p *Pair[T]) Get(from, n, target, displacement int) error {
	r := read[T]{target, displacement, make([]T, n), make([]T, n)}
	if err := p.copy.Get(r.want, target, displacement); err != nil || !p.isMine(from) {
		return err
	}
	p.reads = append(p.reads, r)
	return p.win.Get(r.got, target, displacement)
}

// Check compares this rank's memory, and the results of its Gets since the last Check, with the copy. It must be
// called when the window has completed all operations, and before any rank continues. An error is a *DifferenceError.
func (p *Pair[T]) Check() error {
	me := p.win.World().Rank()
	if err := p.copy.Compare(me, p.win.Local()); err != nil {
		return err
	}
	reads := p.reads
	p.reads = nil
	for _, r := range reads {
		if err := difference(r.target, r.displacement, true, r.got, r.want); err != nil {
			return err
		}
	}
	return nil
}
