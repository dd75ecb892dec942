package window

import (
	"errors"
	"fmt"
	"hash/maphash"
	"runtime"
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
type debugging struct {
	mu sync.Mutex
	// issued are this rank's operations whose buffers are in use.
	issued []*access
	// beyond are the accesses to ranks of other processes, and to parts that are closed already.
	beyond map[int]*accesses
	// opened is the call that has opened the last epoch.
	opened string
}

// An access is an operation on bytes from first to before last of a part.
type access struct {
	rank        int
	target      int
	kind        aggregate.Kind
	reads       bool
	first, last uint64
	fence       uint32
	call        string
	site        site
	// origin is what a put writes, and sum its checksum; result is where what is read goes, and there what it is to be
	// if it is poisoned now.
	origin, result, there []byte
	sum                   uint64
	// over tells that the buffers are the program's again. The mutex of debugging guards it, and there.
	over bool
}

// giveBack makes the buffers the program's. It is called with the mutex.
func (a *access) giveBack() {
	a.over = true
	if a.there != nil {
		copy(a.result, a.there)
	}
}

// String is the call with its place.
func (a *access) String() string { return a.call + " at " + a.site.String() }

// accesses are those to one part that are not complete.
type accesses struct {
	mu   sync.Mutex
	open []*access
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

// excludes tells whether two accesses may not meet.
func (a *access) excludes(b *access) bool {
	if a.last <= b.first || b.last <= a.first || a.fence != b.fence || a.reads && b.reads {
		return false
	}
	family := func(one *access) bool { return one.kind != aggregate.Put && one.kind != aggregate.Get }
	return !family(a) || !family(b)
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
	bytes := i.count << v.shift
	a := &access{
		rank: v.rank, target: i.target, kind: i.kind, reads: i.kind == aggregate.Get || i.kind == aggregate.Fetch && i.op == NoOp,
		first: v.offset(i.displacement), last: v.offset(i.displacement) + uint64(bytes), call: i.call, site: here(),
	}
	v.mu.Lock()
	a.fence = v.epochs.LastFence()
	v.mu.Unlock()
	if i.kind == aggregate.Put {
		a.origin = memoryAt(i.origin, bytes)
	}
	if i.result != nil {
		a.result = memoryAt(i.result, bytes)
	}
	if err := v.watch.debug.use(a); err != nil {
		return nil, err
	}
	all := v.accessesOf(i.target)
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, other := range all.open {
		if a.excludes(other) {
			v.watch.debug.release(a)
			return nil, &MisuseError{
				What:  fmt.Sprintf("bytes %d to %d of rank %d are in use in one epoch", max(a.first, other.first), min(a.last, other.last)-1, a.target),
				First: other.String(), FirstRank: other.rank, Second: a.String(),
			}
		}
	}
	all.open = append(all.open, a)
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

// use notes the buffers of an access.
func (d *debugging) use(a *access) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, other := range d.issued {
		switch {
		case meet(a.result, other.result):
			return a.clash("two operations read into the same memory", other)
		case meet(a.result, other.origin):
			return a.clash("memory that a put writes from is read into", other)
		case meet(a.origin, other.result):
			return a.clash("a put writes from memory that is read into", other)
		}
	}
	a.sum = maphash.Bytes(seed, a.origin)
	d.issued = append(d.issued, a)
	return nil
}

func (a *access) clash(what string, first *access) error {
	return &MisuseError{What: what + " before that is complete", First: first.String(), FirstRank: first.rank, Second: a.String()}
}

// release forgets the buffers of an access.
func (d *debugging) release(a *access) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, other := range d.issued {
		if other == a {
			d.issued = append(d.issued[:i], d.issued[i+1:]...)
			return
		}
	}
}

// withdraw forgets an access that was refused.
func (v *view) withdrawAccess(a *access) {
	v.watch.debug.release(a)
	v.accessesOf(a.target).retire(func(other *access) bool { return other == a })
}

// retire forgets accesses.
func (all *accesses) retire(over func(*access) bool) {
	all.mu.Lock()
	defer all.mu.Unlock()
	kept := all.open[:0]
	for _, a := range all.open {
		if !over(a) {
			kept = append(kept, a)
		}
	}
	clear(all.open[len(kept):])
	all.open = kept
}

// hide poisons what an operation on mapped memory has read, until a call completes it, unless one of another goroutine
// has done so already.
func (d *debugging) hide(a *access) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if a.result == nil || a.over {
		return
	}
	a.there = append([]byte(nil), a.result...)
	for i := range a.result {
		a.result[i] = poison
	}
}

// completed is called at the end of calls that complete operations on a target, or on all if that is -1: their buffers
// are the program's, and if all of it is set they are complete at the target. It says what has become of the buffers.
func (c *core) completed(call string, target int, all bool) error {
	if c.watch == nil || c.watch.debug == nil {
		return nil
	}
	return c.complete(call, target, all)
}

func (c *core) complete(call string, target int, all bool) error {
	d, concerns := c.watch.debug, func(a *access) bool { return a.rank == c.rank && (target < 0 || a.target == target) }
	second := access{call: call, site: here()}
	var wrong error
	d.mu.Lock()
	kept := d.issued[:0]
	for _, a := range d.issued {
		if !concerns(a) {
			kept = append(kept, a)
			continue
		}
		if a.origin != nil && maphash.Bytes(seed, a.origin) != a.sum && wrong == nil {
			wrong = second.clash("the memory that a put writes from was changed", a)
		}
		a.giveBack()
	}
	clear(d.issued[len(kept):])
	d.issued = kept
	d.mu.Unlock()
	if all {
		c.retire(target)
	}
	return wrong
}

// leaves is called at the beginning of calls that end an epoch of a target, or all if that is -1: others may go on
// before they return.
func (c *core) leaves(target int) {
	if c.watch != nil && c.watch.debug != nil {
		c.retire(target)
	}
}

// retire forgets this rank's accesses to a target, or to all if that is -1.
func (c *core) retire(target int) {
	for rank := range c.size {
		if target < 0 || rank == target {
			c.accessesOf(rank).retire(func(a *access) bool { return a.rank == c.rank })
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
	for i, a := range d.issued {
		if meet(a.origin, memory) || meet(a.result, memory) {
			a.giveBack()
			d.issued = append(d.issued[:i], d.issued[i+1:]...)
			return
		}
	}
}

// opened notes a call that has opened an epoch.
func (c *core) opened(call string) {
	if c.watch == nil || c.watch.debug == nil {
		return
	}
	a := access{call: call, site: here()}
	c.watch.debug.mu.Lock()
	defer c.watch.debug.mu.Unlock()
	c.watch.debug.opened = a.String()
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
