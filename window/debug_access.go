package window

import (
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"sync"

	"github.com/onesided/rma/aggregate"
)

// An access is an operation on bytes of a part.
type access struct {
	*caller
	group
	extent
	target     int
	generation uint64
	// buffer is nil for those that need none to themselves.
	buffer *buffer
	// over tells that a Request of it is complete.
	over bool
}

// A group are accesses of a rank, in one epoch of fences, that go together with the same others.
type group struct {
	rank          int
	fence         uint32
	reads, family bool
}

// excludes tells whether accesses of two groups may not meet.
func (g group) excludes(other group) bool {
	return g.fence == other.fence && !(g.reads && other.reads) && !(g.family && other.family)
}

// accesses are those to one part that are not complete.
type accesses struct {
	mu   sync.Mutex
	open map[group]*index[*caller]
	// passing are those that others meet only during their call.
	passing []*access
}

var (
	// parts are the accesses to parts of ranks of this process, by the memory of their control blocks.
	parts sync.Map
	seed  = maphash.MakeSeed()
)

// beginAccesses has other ranks find those to this rank's part, until endAccesses, which is called when every rank
// has closed the window or its memory is about to go, and not before: a rank that does not find any more what it
// has noted there takes misuse for none. Afterwards another window may come to be at the same place.
func (c *core) beginAccesses() {
	if c.watch != nil && c.watch.debug != nil && c.host == c {
		parts.Store(c.own.control.base, new(accesses))
	}
}

func (c *core) endAccesses() {
	if c.host == c {
		parts.Delete(c.own.control.base)
	}
}

// accessesOf are those to a rank's part.
func (c *core) accessesOf(rank int) *accesses {
	if p := c.peers[rank].Load(); p != nil && c.here[rank].Load() {
		if all, known := parts.Load(p.control.base); known {
			return all.(*accesses)
		}
	}
	d := c.watch.debug
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.beyond[rank] == nil {
		d.beyond[rank] = new(accesses)
	}
	return d.beyond[rank]
}

// meets is an access, and a caller of it, that may not meet this one.
func (all *accesses) meets(a *access) (*caller, extent, bool) {
	for group, open := range all.open {
		if a.group.excludes(group) {
			if by, at, met := open.meets(a.extent); met {
				return by, at, true
			}
		}
	}
	for _, other := range all.passing {
		if a.group.excludes(other.group) && a.extent.meets(other.extent) {
			return other.caller, other.extent, true
		}
	}
	return nil, extent{}, false
}

// begin notes an operation that is about to be issued, or says what it does not go with.
func (v *view) begin(i *issue) (*access, error) {
	if _, err := v.reach(i.call, i.target, i.displacement, i.count); err != nil || i.count == 0 {
		return nil, err
	}
	if v.refuses(i) {
		// It says why.
		return nil, nil
	}
	bytes, first, family := i.count<<v.shift, v.offset(i.displacement), i.kind != aggregate.Put && i.kind != aggregate.Get
	a := &access{
		group:  group{rank: v.rank, reads: i.kind == aggregate.Get || i.kind == aggregate.Fetch && i.op == NoOp, family: family},
		extent: extent{first, first + uint64(bytes)},
		target: i.target,
	}
	v.mu.Lock()
	a.fence = v.epochs.LastFence()
	v.mu.Unlock()
	switch {
	case i.kind == aggregate.Put:
		a.buffer = &buffer{memory: memoryAt(i.origin, bytes), puts: true}
	case i.result != nil:
		a.buffer = &buffer{memory: memoryAt(i.result, bytes)}
	}
	if err := v.watch.debug.use(a, caller{v.rank, i.call, here()}); err != nil {
		return nil, err
	}
	all := v.accessesOf(i.target)
	all.mu.Lock()
	defer all.mu.Unlock()
	if by, at, met := all.meets(a); met {
		v.watch.debug.release(a)
		return nil, &MisuseError{
			What:  fmt.Sprintf("bytes %d to %d of rank %d are in use in one epoch", max(a.first, at.first), min(a.last, at.last)-1, a.target),
			First: by.String(), FirstRank: by.rank, Second: a.String(), SecondRank: a.caller.rank,
		}
	}
	if i.call == putNotify {
		all.passing = append(all.passing, a)
		return a, nil
	}
	if all.open == nil {
		all.open = make(map[group]*index[*caller])
	}
	indexOf(all.open, a.group).add(a.extent, a.caller, a.generation)
	return a, nil
}

// refuses tells whether an operation of the accumulate family is none of this window's. It settles no operation of
// SameOp, for this one may be misuse.
func (v *view) refuses(i *issue) bool {
	switch i.kind {
	case aggregate.Accumulate, aggregate.Fetch:
		return v.refuseAny(i.op, i.count) != nil || v.hints.SameOp && i.op != NoOp && v.refuseOther(i.op) != nil
	case aggregate.Swap:
		return v.hints.CardAtomics && refuseKind(v.kind) != nil
	}
	return false
}

// accepted has what an access that was issued shares with earlier ones be in use until it is complete too.
func (v *view) accepted(a *access) {
	all := v.accessesOf(a.target)
	if a.call == putNotify {
		all.retire(func(other *access) bool { return other == a })
	} else {
		all.mu.Lock()
		if open := all.open[a.group]; open != nil {
			open.raise(a.extent, a.generation)
		}
		all.mu.Unlock()
	}
	if a.buffer == nil {
		return
	}
	d := v.watch.debug
	d.mu.Lock()
	defer d.mu.Unlock()
	if in := d.inUse(a.buffer, a.target); in != nil {
		in.raise(extentOf(a.buffer.memory), a.generation)
		d.uses++
		a.buffer.used = d.uses
	}
}

// withdrawAccess forgets an access that was refused.
func (v *view) withdrawAccess(a *access) {
	v.watch.debug.release(a)
	all := v.accessesOf(a.target)
	all.retire(func(other *access) bool { return other == a })
	all.mu.Lock()
	defer all.mu.Unlock()
	if open := all.open[a.group]; open != nil && a.call != putNotify {
		open.remove(a.extent)
	}
}

// retire forgets accesses that were met only during their call.
func (all *accesses) retire(over func(*access) bool) {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.passing = slices.DeleteFunc(all.passing, over)
}

// retireAll forgets the accesses of a rank up to a generation, or if writes is not set those that read.
func (all *accesses) retireAll(rank int, generation uint64, writes bool) {
	over := func(g group) bool { return g.rank == rank && (writes || g.reads) }
	all.retire(func(a *access) bool { return over(a.group) && a.generation <= generation })
	all.mu.Lock()
	defer all.mu.Unlock()
	maps.DeleteFunc(all.open, func(g group, open *index[*caller]) bool {
		if over(g) && generation != lastGeneration {
			open.take(generation)
		}
		return over(g) && (generation == lastGeneration || open.tree.Len() == 0)
	})
}

// hasRead forgets an access that reads, nil for none, whose Request is complete.
func (c *core) hasRead(a *access) {
	if a == nil {
		return
	}
	all := c.accessesOf(a.target)
	all.mu.Lock()
	defer all.mu.Unlock()
	if open := all.open[a.group]; open != nil && !a.over {
		open.remove(a.extent)
	}
	a.over = true
}

// leaves is called at the beginning of calls that end an epoch of a target, or all if that is -1: others may go on
// before they return.
func (c *core) leaves(target int) {
	if c.watch != nil && c.watch.debug != nil {
		c.retire(target, lastGeneration, true)
	}
}

// retire forgets this rank's accesses to a target, or to all if that is -1, up to a generation, or if writes is not set
// those that read.
func (c *core) retire(target int, generation uint64, writes bool) {
	for rank := range c.size {
		if target < 0 || rank == target {
			c.accessesOf(rank).retireAll(c.rank, generation, writes)
		}
	}
}
