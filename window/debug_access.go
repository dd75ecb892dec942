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

// A group has the accesses of a rank in one epoch of fences that conflict with the same other accesses.
type group struct {
	rank          int
	fence         uint32
	reads, family bool
}

// excludes reports whether accesses of two groups may not overlap.
func (g group) excludes(other group) bool {
	return g.fence == other.fence && !(g.reads && other.reads) && !(g.family && other.family)
}

// accesses has the incomplete accesses to one part.
type accesses struct {
	mu   sync.Mutex
	open map[group]*index[*caller]
	// passing has accesses that others can conflict with only during their call.
	passing []*access
}

var (
	// parts has the accesses to parts of ranks of this process, keyed by the memory of their control blocks.
	parts sync.Map
	seed  = maphash.MakeSeed()
)

// beginAccesses has other ranks find the accesses to this rank's part, until endAccesses. That is called when every
// rank has closed the window, or when its memory is about to be freed. Earlier, a rank could miss misuse, because it
// would not find what it had recorded there. Afterwards another window may be at the same address.
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

// accessesOf returns the accesses to a rank's part.
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

// meets returns an access that this one must not overlap, and its caller.
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

// begin records an operation that is about to be issued, or returns the error of one that conflicts with it.
func (v *view) begin(i *issue) (*access, error) {
	if _, err := v.reach(i.call, i.target, i.displacement, i.count); err != nil || i.count == 0 {
		return nil, err
	}
	if v.refuses(i) {
		// The operation returns the error.
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

// refuses reports whether the window rejects an operation of the accumulate family. It does not choose the operation of
// SameOp, because this one may be misuse.
func (v *view) refuses(i *issue) bool {
	switch i.kind {
	case aggregate.Accumulate, aggregate.Fetch:
		return v.refuseAny(i.op, i.count) != nil || v.hints.SameOp && i.op != NoOp && v.refuseOther(i.op) != nil
	case aggregate.Swap:
		return v.hints.CardAtomics && refuseKind(v.kind) != nil
	}
	return false
}

// accepted keeps records that an issued access shares with earlier ones in use until it is complete, too.
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

// withdrawAccess forgets an access that was rejected.
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

// retire forgets accesses that others could conflict with only during their call.
func (all *accesses) retire(over func(*access) bool) {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.passing = slices.DeleteFunc(all.passing, over)
}

// retireAll forgets the accesses of a rank up to and including a generation. If writes is not set, it forgets only
// those that read.
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

// hasRead forgets an access that reads, because its Request is complete. a may be nil.
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

// leaves is called at the beginning of calls that end an epoch of a target, or of all targets if target is -1. Other
// ranks may continue before these calls return.
func (c *core) leaves(target int) {
	if c.watch != nil && c.watch.debug != nil {
		c.retire(target, lastGeneration, true)
	}
}

// retire forgets this rank's accesses to a target, or to all if target is -1, up to and including a generation. If
// writes is not set, it forgets only those that read.
func (c *core) retire(target int, generation uint64, writes bool) {
	for rank := range c.size {
		if target < 0 || rank == target {
			c.accessesOf(rank).retireAll(c.rank, generation, writes)
		}
	}
}
