package oracle

import (
	"slices"

	"github.com/onesided/rma/aggregate/reduce"
	"github.com/onesided/rma/window"
)

// A Program is what all ranks of a job do to their windows: a sequence of phases, each with a synchronization for
// each window. It is data: it can be printed, parsed, changed and run again.
type Program struct {
	// Ranks is the size of the job.
	Ranks   int
	Windows []Window
	Phases  []Phase
}

// A Window describes how a window is made.
type Window struct {
	// Kind is the element type. Counts are the numbers of elements that the ranks expose.
	Kind   reduce.Kind
	Counts []int
	// Create makes the window over the program's own memory.
	Create bool
	// The options of the window. Slots is the number of notification slots.
	SingleElement, SameOp, Unordered, Immediate, CardAtomics bool
	Slots                                                    int
}

// A Mode is a kind of epoch.
type Mode uint8

const (
	// Idle: the phase does nothing to the window.
	Idle Mode = iota
	// Fenced: the phase is one epoch between two Fences.
	Fenced
	// Started: an epoch of Start and Complete, Post and Wait, for the ranks of Sync.Targets.
	Started
	// Locked: steps lock and unlock.
	Locked
	// AllLocked: all ranks hold LockAll during the phase.
	AllLocked
	modes
)

// A Sync describes how a phase synchronizes a window.
type Sync struct {
	Mode Mode
	// NoPrecede is asserted by the Fence that opens the epoch, if none is open, and NoSucceed by the Fence that
	// closes it. With Assert both assert NoPut and NoStore if these are true, and LockAll asserts NoCheck.
	NoPrecede, NoSucceed, Assert bool
	// Targets has the group of the Start of each rank, or nil if it calls none.
	Targets [][]int
	// Test ends exposures by Test, if it reports the end soon.
	Test bool
}

// A Phase is a set of steps of all ranks that are concurrent, as far as the synchronization allows.
type Phase struct {
	// A Loose phase has no Barrier after it, and memory is not examined.
	Loose bool
	// A Hasty phase makes each blocking call with an ended context first.
	Hasty bool
	// Syncs has one Sync for each window.
	Syncs []Sync
	// Steps of one member of a rank are in the member's order.
	Steps []Step
}

// A Call is the call of a step.
type Call uint8

// The calls. Those from Fence on only occur as calls to be rejected, because a phase makes them by its Sync.
const (
	Put Call = iota
	RPut
	PutNotify
	PutLayout
	Get
	RGet
	GetLayout
	Accumulate
	RAccumulate
	AccumulateLayout
	AccumulateEach
	GetAccumulate
	RGetAccumulate
	FetchAndOp
	CompareAndSwap
	// Store and Load access the rank's own part by the processor.
	Store
	Load
	Flush
	FlushLocal
	FlushAll
	FlushLocalAll
	// RFlush is complete when its request is.
	RFlush
	Lock
	Unlock
	LockAll
	UnlockAll
	// WaitNotify waits for all notifications of a slot since the last WaitNotify, counted from the last phase that is
	// not loose.
	WaitNotify
	// Wait and Test are for the request of an earlier step of the same member.
	Wait
	Test
	Fence
	Start
	Post
	Complete
	WaitExposure
	TestExposure
	Close
	Group
	View
	calls
)

var callNames = [calls]string{
	"put", "rput", "putnotify", "putlayout", "get", "rget", "getlayout",
	"accumulate", "raccumulate", "accumulatelayout", "accumulateeach", "getaccumulate", "rgetaccumulate", "fetch", "swap",
	"store", "load", "flush", "flushlocal", "flushall", "flushlocalall", "rflush", "lock", "unlock", "lockall", "unlockall",
	"waitnotify", "wait", "test",
	"fence", "start", "post", "complete", "waitexposure", "testexposure", "close", "group", "view",
}

func (c Call) String() string { return callNames[c] }

// Operates reports whether the call is an operation on a target.
func (c Call) Operates() bool { return c <= CompareAndSwap }

// reads reports whether the call has a result.
func (c Call) reads() bool {
	switch c {
	case Get, RGet, GetLayout, GetAccumulate, RGetAccumulate, FetchAndOp, CompareAndSwap, Load:
		return true
	}
	return false
}

// combines reports whether the call belongs to the accumulate family.
func (c Call) combines() bool { return c >= Accumulate && c <= CompareAndSwap }

// requests reports whether the call returns a request.
func (c Call) requests() bool {
	return c == RPut || c == RGet || c == RAccumulate || c == RGetAccumulate || c == RFlush
}

// layouts reports whether the call has layouts, as AccumulateEach has for the displacements in the target's part.
func (c Call) layouts() bool {
	return c == PutLayout || c == GetLayout || c == AccumulateLayout || c == AccumulateEach
}

// A Step is one call of one rank.
type Step struct {
	// Rank makes the call, by its goroutine Member. Members other than 0 only operate and flush.
	Rank, Member int
	Call         Call
	// Refused says that the call must return an error, which the model predicts.
	Refused bool
	Window  int
	// Kind is the type as which the window is viewed.
	Kind reduce.Kind
	Op   window.Op
	// Target, At (the displacement) and Count are arguments of the operation, in elements of Kind.
	Target, At, Count int
	// Fill is the first operand: the i-th is Fill+i. Compare is an argument of CompareAndSwap.
	Fill, Compare int64
	// From is the layout of the buffer, To that in the target's part.
	From, To Shape
	Slot     int
	// Request numbers the request that the step makes or uses.
	Request  int
	LockKind window.LockKind
	// Nil makes the result nil. Assert and Ranks are arguments of calls that must be rejected.
	Nil    bool
	Assert window.Assert
	Ranks  []int
}

// A Shape is a layout as data: Indexed if there is an Index, otherwise Strided.
type Shape struct {
	Blocks, Length, Stride int
	Index                  []window.Block
}

func (s *Shape) layout() window.Layout {
	if s.Index != nil {
		return window.Indexed(slices.Clone(s.Index)...)
	}
	return window.Strided(s.Blocks, s.Length, s.Stride)
}

// each calls do for each block that has elements.
func (s *Shape) each(do func(offset, n int)) {
	if s.Index != nil {
		for _, b := range s.Index {
			if b.Length > 0 {
				do(b.Offset, b.Length)
			}
		}
		return
	}
	for i := range s.Blocks {
		if s.Length > 0 {
			do(i*s.Stride, s.Length)
		}
	}
}

// elements returns the number of elements that the shape touches.
func (s *Shape) elements() (n int) {
	s.each(func(_, length int) { n += length })
	return n
}

// extent returns one past the last element that the shape touches.
func (s *Shape) extent() (n int) {
	s.each(func(offset, length int) { n = max(n, offset+length) })
	return n
}

// overlaps reports whether the shape touches an element twice.
func (s *Shape) overlaps() bool {
	var touched []window.Block
	s.each(func(offset, length int) { touched = append(touched, window.Block{Offset: offset, Length: length}) })
	slices.SortFunc(touched, func(a, b window.Block) int { return a.Offset - b.Offset })
	for i := 1; i < len(touched); i++ {
		if touched[i].Offset < touched[i-1].Offset+touched[i-1].Length {
			return true
		}
	}
	return false
}

// touches calls do for each run of elements of the target that the step accesses: n elements from displacement at on.
// The first is operand number operand of the step.
func (s *Step) touches(do func(at, n, operand int)) {
	switch {
	case s.Call.layouts():
		operand := 0
		s.To.each(func(offset, n int) {
			do(s.At+offset, n, operand)
			operand += n
		})
	case s.elements() > 0:
		do(s.At, s.elements(), 0)
	}
}

// elements returns the number of elements that the step accesses.
func (s *Step) elements() int {
	switch {
	case s.Call == FetchAndOp || s.Call == CompareAndSwap:
		return 1
	case s.Call.layouts():
		return s.To.elements()
	case s.Call <= CompareAndSwap || s.Call == Store || s.Call == Load:
		return s.Count
	}
	return 0
}

// reads reports whether the step reads anything.
func (s *Step) reads() bool { return s.Call.reads() && !s.Refused }

// part returns the rank whose part of the window the step accesses.
func (s *Step) part() int {
	if s.Call == Store || s.Call == Load {
		return s.Rank
	}
	return s.Target
}

// Clone returns a deep copy.
func (p *Program) Clone() *Program {
	c := &Program{Ranks: p.Ranks, Windows: slices.Clone(p.Windows), Phases: slices.Clone(p.Phases)}
	for i := range c.Windows {
		c.Windows[i].Counts = slices.Clone(c.Windows[i].Counts)
	}
	for i := range c.Phases {
		f := &c.Phases[i]
		f.Syncs, f.Steps = slices.Clone(f.Syncs), slices.Clone(f.Steps)
		for j := range f.Syncs {
			targets := slices.Clone(f.Syncs[j].Targets)
			for rank := range targets {
				targets[rank] = slices.Clone(targets[rank])
			}
			f.Syncs[j].Targets = targets
		}
		for j := range f.Steps {
			s := &f.Steps[j]
			s.From.Index, s.To.Index, s.Ranks = slices.Clone(s.From.Index), slices.Clone(s.To.Index), slices.Clone(s.Ranks)
		}
	}
	return c
}

// Steps returns the number of steps of the program.
func (p *Program) Steps() int {
	n := 0
	for i := range p.Phases {
		n += len(p.Phases[i].Steps)
	}
	return n
}

// origins returns the ranks whose Start group contains rank.
func (y *Sync) origins(rank int) []int {
	var origins []int
	for origin, targets := range y.Targets {
		if slices.Contains(targets, rank) {
			origins = append(origins, origin)
		}
	}
	return origins
}

// starts reports whether a rank calls Start, and posts whether it calls Post. A rank posts if it is in a group, or
// calls Start without targets.
func (y *Sync) starts(rank int) bool {
	return y.Mode == Started && rank < len(y.Targets) && y.Targets[rank] != nil
}

func (y *Sync) posts(rank int) bool {
	if y.Mode != Started {
		return false
	}
	return len(y.origins(rank)) > 0 || y.starts(rank) && len(y.Targets[rank]) == 0
}

// ShortAtomics reports whether elements of less than 4 bytes are combined in a window made with SingleElement. Atomic
// instructions on the enclosing word do that, which the race detector takes for accesses to the neighbors.
func (p *Program) ShortAtomics() bool {
	return slices.ContainsFunc(p.Phases, func(phase Phase) bool {
		return slices.ContainsFunc(phase.Steps, func(s Step) bool {
			return s.Call.combines() && s.Kind.Size() < 4 && uint(s.Window) < uint(len(p.Windows)) && p.Windows[s.Window].SingleElement
		})
	})
}
