package window

import (
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/onesided/rma/aggregate"
)

// ErrMisuse: a use of a window that the rules forbid and that goes unnoticed but for world.WithDebug.
var ErrMisuse = errors.New("misuse")

// A MisuseError names two calls that do not go together. It is an ErrMisuse.
type MisuseError struct {
	// What is wrong.
	What string
	// First and Second are the calls, in this order, with where they were made: "Put at a.go:10".
	First, Second string
	// FirstRank made the first one.
	FirstRank int
}

func (e *MisuseError) Error() string {
	return fmt.Sprintf("window: %v: %s: %s of rank %d, and %s", ErrMisuse, e.What, e.First, e.FirstRank, e.Second)
}

// Is makes it an ErrMisuse.
func (e *MisuseError) Is(target error) bool { return target == ErrMisuse }

// debugging finds misuse of a window. It keeps what was issued and is not complete:
//
//   - Operations of one epoch that may not meet, because one is a put, or one a get and one changes the element by the
//     accumulate family: of this rank, and of others that are goroutines of this process. Operations that were
//     completed by a flush or an unlock meet no others, those of two Fences neither. A put that notifies, which may be
//     known to be complete by what its target does, is compared with what is not complete, but nothing with it.
//   - Local memory: results that are asked for twice, or put from before they are there, and origins of puts that
//     have changed when the put completes. Where the result of an operation is there at once, because the
//     target is mapped, the program finds poison in its place until the call that completes it.
//
// Operations with a Request, whose buffers are complete by themselves, are left out of the second.
//
// Operations of one kind on the same bytes are kept once, and so are puts from the same memory: what is kept is bounded by
// what they touch, and what a new one meets is found by address. So an epoch takes time in proportion to its operations.
type debugging struct {
	mu sync.Mutex
	// origins and results are the buffers of this rank's operations that are in use, by target and address. No two results
	// meet.
	origins, results map[int]*index[*buffer]
	uses             uint64
	// generation counts the calls of RFlush so far. What is used behind one is not complete with it.
	generation uint64
	// callers are what has been used of them, each once.
	callers map[caller]*caller
	// beyond are the accesses to ranks of other processes, and to parts that are closed already.
	beyond map[int]*accesses
	// opened is the call that has opened the last epoch.
	opened string
}

// A caller is a call of a rank, with its place.
type caller struct {
	rank int
	call string
	site site
}

// String is the call with its place.
func (c *caller) String() string { return c.call + " at " + c.site.String() }

// An access is an operation on bytes of a part.
type access struct {
	*caller
	group
	extent
	target int
	// buffer is nil for those that need none to themselves.
	buffer *buffer
}

// A group are accesses of a rank, in one epoch of fences, that go together with the same others.
type group struct {
	rank          int
	fence         uint32
	reads, family bool
	generation    uint64
}

// excludes tells whether accesses of two groups may not meet.
func (g group) excludes(other group) bool {
	return g.fence == other.fence && !(g.reads && other.reads) && !(g.family && other.family)
}

// A buffer is memory of the program that operations on a target use.
type buffer struct {
	*caller
	memory []byte
	// puts write it, and sum is its checksum; changed tells that a later put has found another one. Else it is read into,
	// and there is what it is to be if it is poisoned now.
	puts    bool
	sum     uint64
	changed bool
	there   []byte
	// used is the last use of it, of a generation.
	used, generation uint64
	// over tells that it is the program's again.
	over bool
}

// giveBack makes it the program's.
func (b *buffer) giveBack() {
	b.over = true
	if b.there != nil {
		copy(b.memory, b.there)
	}
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

// poison is in the place of results that are not valid yet.
const poison = 0xdb

// A site is the call stack of a call.
type site [8]uintptr

func here() (s site) {
	runtime.Callers(3, s[:])
	return s
}

// String is the first place outside of this package.
func (s *site) String() string {
	frames := runtime.CallersFrames(s[:])
	for {
		frame, more := frames.Next()
		if !strings.HasPrefix(frame.Function, packagePath) || strings.HasSuffix(frame.File, "_test.go") {
			return fmt.Sprintf("%s:%d", frame.File, frame.Line)
		}
		if !more {
			return "an unknown place"
		}
	}
}

const packagePath = "github.com/onesided/rma/window."

// beginAccesses has other ranks find those to this rank's part, until endAccesses: what is behind that they keep to
// themselves, since nobody would forget it, and another window may come to be at the same place.
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
			First: by.String(), FirstRank: by.rank, Second: a.String(),
		}
	}
	if i.call == putNotify {
		all.passing = append(all.passing, a)
		return a, nil
	}
	if all.open == nil {
		all.open = make(map[group]*index[*caller])
	}
	indexOf(all.open, a.group).add(a.extent, a.caller)
	return a, nil
}

// refuses tells whether an operation of the accumulate family is none of this window's. It settles no operation of
// SameOp, for this one may be misuse.
func (v *view) refuses(i *issue) bool {
	switch i.kind {
	case aggregate.Accumulate, aggregate.Fetch:
		return v.refuseAny(i.op, i.count) != nil || v.hints.sameOp && i.op != NoOp && v.refuseOther(i.op) != nil
	case aggregate.Swap:
		return v.hints.cardAtomics && refuseKind(v.kind) != nil
	}
	return false
}

// use notes the caller of an access, and its buffer.
func (d *debugging) use(a *access, by caller) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.callers == nil {
		d.callers = make(map[caller]*caller)
		d.origins, d.results = make(map[int]*index[*buffer]), make(map[int]*index[*buffer])
	}
	if a.caller = d.callers[by]; a.caller == nil {
		a.caller = &caller{by.rank, by.call, by.site}
		d.callers[by] = a.caller
	}
	a.generation = d.generation
	b := a.buffer
	if b == nil {
		return nil
	}
	b.caller = a.caller
	at := extentOf(b.memory)
	if first, met := meetsAny(d.results, at); met && b.puts {
		return a.clash("a put writes from memory that is read into", first.caller)
	} else if met {
		return a.clash("two operations read into the same memory", first.caller)
	}
	if b.puts {
		b.sum = maphash.Bytes(seed, b.memory)
		sum := b.sum
		b = indexOf(d.origins, a.target).add(at, b)
		b.changed = b.changed || b.sum != sum
		a.buffer = b
	} else {
		if first, met := meetsAny(d.origins, at); met {
			return a.clash("memory that a put writes from is read into", first.caller)
		}
		indexOf(d.results, a.target).add(at, b)
	}
	d.uses++
	b.used, b.generation = d.uses, d.generation
	return nil
}

// meetsAny is a buffer that memory meets.
func meetsAny(buffers map[int]*index[*buffer], memory extent) (*buffer, bool) {
	for _, all := range buffers {
		if b, _, met := all.meets(memory); met {
			return b, true
		}
	}
	return nil, false
}

func (c *caller) clash(what string, first *caller) error {
	return &MisuseError{What: what + " before that is complete", First: first.String(), FirstRank: first.rank, Second: c.String()}
}

// release forgets the buffer of an access.
func (d *debugging) release(a *access) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if a.buffer != nil {
		d.forget(a.buffer, a.target)
	}
}

// forget forgets one use of a buffer, if it is in use still.
func (d *debugging) forget(b *buffer, target int) {
	buffers := d.results
	if b.puts {
		buffers = d.origins
	}
	if all, at := buffers[target], extentOf(b.memory); all != nil {
		if now, _ := all.at(at); now == b {
			all.remove(at)
		}
	}
}

// withdraw forgets an access that was refused.
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

// retireAll forgets the accesses of a rank up to a generation.
func (all *accesses) retireAll(rank int, generation uint64) {
	over := func(g group) bool { return g.rank == rank && g.generation <= generation }
	all.retire(func(a *access) bool { return over(a.group) })
	all.mu.Lock()
	defer all.mu.Unlock()
	maps.DeleteFunc(all.open, func(g group, _ *index[*caller]) bool { return over(g) })
}

// hide poisons what an operation on mapped memory has read, until a call completes it, unless one of another goroutine
// has done so already.
func (d *debugging) hide(a *access) {
	d.mu.Lock()
	defer d.mu.Unlock()
	b := a.buffer
	if b == nil || b.puts || b.over {
		return
	}
	b.there = slices.Clone(b.memory)
	for i := range b.memory {
		b.memory[i] = poison
	}
}

// completed is called at the end of calls that complete operations on a target, or on all if that is -1: their buffers
// are the program's, and if all of it is set they are complete at the target. It says what has become of the buffers.
func (c *core) completed(call string, target int, all bool) error {
	return c.completedOf(call, target, all, lastGeneration)
}

// lastGeneration is behind all.
const lastGeneration = math.MaxUint64

// completedOf is completed that completes what was used up to a generation.
func (c *core) completedOf(call string, target int, all bool, generation uint64) error {
	if c.watch == nil || c.watch.debug == nil {
		return nil
	}
	return c.complete(call, target, all, generation)
}

// nextGeneration begins another one, and gives the one that ends.
func (c *core) nextGeneration() uint64 {
	if c.watch == nil || c.watch.debug == nil {
		return 0
	}
	d := c.watch.debug
	d.mu.Lock()
	defer d.mu.Unlock()
	d.generation++
	return d.generation - 1
}

func (c *core) complete(call string, target int, all bool, generation uint64) error {
	d, second := c.watch.debug, caller{rank: c.rank, call: call, site: here()}
	var changed *buffer
	d.mu.Lock()
	for _, b := range take(d.origins, target, generation) {
		if (b.changed || maphash.Bytes(seed, b.memory) != b.sum) && (changed == nil || b.used < changed.used) {
			changed = b
		}
	}
	for _, b := range take(d.results, target, generation) {
		b.giveBack()
	}
	d.mu.Unlock()
	if all {
		c.retire(target, generation)
	}
	if changed != nil {
		return second.clash("the memory that a put writes from was changed", changed.caller)
	}
	return nil
}

// take is the buffers of a target, or of all if that is -1, up to a generation, which are forgotten.
func take(buffers map[int]*index[*buffer], target int, generation uint64) (taken []*buffer) {
	for of, all := range buffers {
		if target >= 0 && of != target {
			continue
		}
		first := len(taken)
		all.tree.Ascend(func(one entry[*buffer]) bool {
			if one.of.generation <= generation {
				taken = append(taken, one.of)
			}
			return true
		})
		if generation == lastGeneration {
			delete(buffers, of)
			continue
		}
		for _, b := range taken[first:] {
			all.tree.Delete(entry[*buffer]{extent: extentOf(b.memory)})
		}
	}
	return taken
}

// leaves is called at the beginning of calls that end an epoch of a target, or all if that is -1: others may go on
// before they return.
func (c *core) leaves(target int) {
	if c.watch != nil && c.watch.debug != nil {
		c.retire(target, lastGeneration)
	}
}

// retire forgets this rank's accesses to a target, or to all if that is -1, up to a generation.
func (c *core) retire(target int, generation uint64) {
	for rank := range c.size {
		if target < 0 || rank == target {
			c.accessesOf(rank).retireAll(c.rank, generation)
		}
	}
}

// ownBuffers leaves the buffers of the operation that was issued with this memory to a Request.
func (c *core) ownBuffers(memory []byte) {
	if c.watch == nil || c.watch.debug == nil || len(memory) == 0 {
		return
	}
	d := c.watch.debug
	d.mu.Lock()
	defer d.mu.Unlock()
	var last *buffer
	var of int
	for _, buffers := range []map[int]*index[*buffer]{d.origins, d.results} {
		for target, all := range buffers {
			if b, known := all.at(extentOf(memory)); known && (last == nil || b.used > last.used) {
				last, of = b, target
			}
		}
	}
	if last != nil {
		if !last.puts {
			last.giveBack()
		}
		d.forget(last, of)
	}
}

// opened notes a call that has opened an epoch.
func (c *core) opened(call string) {
	if c.watch == nil || c.watch.debug == nil {
		return
	}
	by := caller{rank: c.rank, call: call, site: here()}
	c.watch.debug.mu.Lock()
	defer c.watch.debug.mu.Unlock()
	c.watch.debug.opened = by.String()
}

// whoOpened says which call has opened the epoch that is open.
func (c *core) whoOpened() string {
	if c.watch == nil || c.watch.debug == nil {
		return ""
	}
	c.watch.debug.mu.Lock()
	defer c.watch.debug.mu.Unlock()
	if c.watch.debug.opened == "" {
		return ""
	}
	return "; the last was opened by " + c.watch.debug.opened
}
