package oracle

import (
	"errors"
	"fmt"
	"slices"

	"github.com/onesided/rma/window"
)

// ErrIllegal reports a program that is not legal, or whose outcome the model cannot determine.
var ErrIllegal = errors.New("not a legal program")

// The limits of programs that pass Check.
const (
	mostRanks   = 64
	mostMembers = 4
	mostBytes   = 1 << 26
	// mostSlots is the limit of window.Notifications.
	mostSlots = 1 << 16
	// mostCells is the greatest number of accesses to an element between two examinations if their order matters.
	mostCells = 30
	// mostEpochs is the greatest number of lock epochs that exclusive locks may serialize.
	mostEpochs = 32
)

// Check returns an error if a program is not legal. A legal program satisfies three conditions:
//
//   - Every step is allowed by the rules of package window, or, if it says so, rejected for one reason.
//   - Accesses to an element do not conflict, except for atomic operations and lock epochs that exclude each other.
//   - No order of events makes ranks wait for each other forever.
func (p *Program) Check() error {
	illegal := func(err error) error { return fmt.Errorf("oracle: %w: %w", ErrIllegal, err) }
	if err := p.checkWindows(); err != nil {
		return illegal(err)
	}
	c := newChecker(p)
	for i := range p.Phases {
		if err := c.phase(i); err != nil {
			return illegal(fmt.Errorf("phase %d: %w", i, err))
		}
	}
	for _, s := range p.stretches() {
		for i := range s.parts {
			if err := p.checkPart(&s.parts[i]); err != nil {
				return illegal(err)
			}
		}
	}
	return nil
}

func (p *Program) checkWindows() error {
	if p.Ranks < 1 || p.Ranks > mostRanks {
		return fmt.Errorf("%d ranks, allowed are 1 to %d", p.Ranks, mostRanks)
	}
	for i := range p.Windows {
		w := &p.Windows[i]
		if !w.Kind.Valid() || len(w.Counts) != p.Ranks || w.Slots < 0 || w.Slots > mostSlots {
			return fmt.Errorf("window %d: want an element type, %d counts and 0 to %d slots", i, p.Ranks, mostSlots)
		}
		for _, count := range w.Counts {
			if count < 0 || count > mostBytes/w.Kind.Size() {
				return fmt.Errorf("window %d: a count is %d", i, count)
			}
		}
	}
	return nil
}

// A checker goes through a program step by step.
type checker struct {
	*Program
	// syncs are those of the current phase.
	syncs []Sync
	// epochs are by window and rank.
	epochs []epochs
	// unsettled has, for each window, the mode of earlier accesses that need an examination or a Fence before accesses
	// in another mode.
	unsettled []Mode
	// sameOp is 1 plus the operation of each window made with SameOp.
	sameOp []window.Op
}

func newChecker(p *Program) *checker {
	c := &checker{p, nil, make([]epochs, len(p.Windows)*p.Ranks), make([]Mode, len(p.Windows)), make([]window.Op, len(p.Windows))}
	for i := range c.epochs {
		c.epochs[i].locks = make([]window.LockKind, p.Ranks)
	}
	return c
}

func (c *checker) of(win, rank int) *epochs { return &c.epochs[win*c.Ranks+rank] }

func (c *checker) phase(number int) error {
	f := &c.Phases[number]
	if len(f.Syncs) != len(c.Windows) {
		return fmt.Errorf("%d synchronizations for %d windows", len(f.Syncs), len(c.Windows))
	}
	if f.Loose && number == len(c.Phases)-1 {
		return errors.New("the last phase is loose")
	}
	c.syncs = f.Syncs
	for win := range f.Syncs {
		if err := c.begin(win, &f.Syncs[win]); err != nil {
			return fmt.Errorf("window %d: %w", win, err)
		}
	}
	if err := c.steps(f); err != nil {
		return err
	}
	for i := range c.epochs {
		c.epochs[i].end(&f.Syncs[i/c.Ranks])
	}
	for win := range f.Syncs {
		switch f.Syncs[win].Mode {
		case Idle:
		case Fenced:
			c.unsettled[win] = Idle
		case AllLocked:
			c.unsettled[win] = Locked
		default:
			c.unsettled[win] = max(c.unsettled[win], f.Syncs[win].Mode)
		}
		if !f.Loose {
			c.unsettled[win] = Idle
		}
	}
	return nil
}

// begin opens the epochs of a window.
func (c *checker) begin(win int, y *Sync) error {
	fenced := c.of(win, 0).fenced
	switch {
	case y.Mode >= modes:
		return errors.New("no such mode")
	case fenced && y.Mode != Fenced && y.Mode != Idle:
		return fmt.Errorf("an epoch of Fence is open, so the mode cannot be %v", y.Mode)
	case y.Mode == Started && len(y.Targets) != c.Ranks:
		return fmt.Errorf("%d groups for %d ranks", len(y.Targets), c.Ranks)
	case y.Mode != Fenced && (y.NoPrecede || y.NoSucceed), fenced && y.NoPrecede, y.Assert && y.Mode != Fenced && y.Mode != AllLocked:
		return errors.New("assertions without a call to make them")
	case c.unsettled[win] != Idle && (y.Mode == Locked || y.Mode == AllLocked), c.unsettled[win] == Locked && y.Mode == Started:
		return fmt.Errorf("after a loose phase of %v, %v lets accesses meet", c.unsettled[win], y.Mode)
	}
	for _, targets := range y.Targets {
		if !c.group(targets) {
			return fmt.Errorf("no group: %v", targets)
		}
	}
	for rank := range c.Ranks {
		c.of(win, rank).begin(y, rank)
	}
	return nil
}

// steps checks each step by itself, and that the order of locks excludes deadlock.
func (c *checker) steps(f *Phase) error {
	waited := map[[3]int]bool{}
	notifying := make([]bool, c.Ranks)
	for i := range f.Steps {
		s := &f.Steps[i]
		if err := c.step(f, i); err != nil {
			return fmt.Errorf("step %d: %v: %w", i, s, err)
		}
		if s.Refused {
			continue
		}
		switch s.Call {
		case Lock, LockAll:
			if f.Loose && s.Call == Lock && s.LockKind == window.Exclusive {
				return fmt.Errorf("step %d: %v: exclusive locks in a loose phase", i, s)
			}
			if highest := c.highestLock(s.Rank); highest >= c.lockOrder(s) {
				return fmt.Errorf("step %d: %v: locks are taken in the order of windows and targets", i, s)
			}
		case PutNotify:
			if s.Member == 0 && notifying[s.Rank] {
				return fmt.Errorf("step %d: %v: after a waitnotify of the same rank", i, s)
			}
		case WaitNotify:
			slot := [3]int{s.Window, s.Rank, s.Slot}
			if waited[slot] || c.highestLock(s.Rank) >= 0 {
				return fmt.Errorf("step %d: %v: a second one, or with a lock held", i, s)
			}
			waited[slot], notifying[s.Rank] = true, true
		}
		c.of(s.Window, s.Rank).step(s)
	}
	for rank := range c.Ranks {
		for win := range c.Windows {
			if e := c.of(win, rank); e.locked() || e.all && f.Syncs[win].Mode != AllLocked {
				return fmt.Errorf("rank %d ends it with a lock of window %d", rank, win)
			}
		}
	}
	return nil
}

// lockOrder returns the position of a step's lock in the order in which locks are taken.
func (c *checker) lockOrder(s *Step) int {
	if s.Call == LockAll {
		return s.Window * (c.Ranks + 1)
	}
	return s.Window*(c.Ranks+1) + s.Target
}

// highestLock returns the position of the last lock that steps of a rank hold, or -1. LockAll holds all locks of the
// window.
func (c *checker) highestLock(rank int) int {
	for win := len(c.Windows) - 1; win >= 0; win-- {
		e := c.of(win, rank)
		if e.all && c.syncs[win].Mode != AllLocked {
			return win*(c.Ranks+1) + c.Ranks
		}
		for target := c.Ranks - 1; target >= 0; target-- {
			if e.locks[target] != 0 {
				return win*(c.Ranks+1) + target
			}
		}
	}
	return -1
}

func (c *checker) step(f *Phase, i int) error {
	s := &f.Steps[i]
	switch {
	case s.Rank < 0 || s.Rank >= c.Ranks || s.Member < 0 || s.Member >= mostMembers:
		return fmt.Errorf("no such rank or member, there are %d of %d", c.Ranks, mostMembers)
	case s.Window < 0 || s.Window >= len(c.Windows) || s.Call >= calls || !s.Kind.Valid():
		return errors.New("no such window, call or element type")
	case s.Count < 0 || s.Count > mostBytes || s.Call >= Fence && !s.Refused:
		return errors.New("a count that is not allowed, or a call that phases make")
	case s.Member != 0 && (s.Refused || !s.Call.Operates() && (s.Call < Flush || s.Call > RFlush) && s.Call != Wait && s.Call != Test):
		return errors.New("only member 0 does more than operate and flush")
	}
	win := &c.Windows[s.Window]
	mode := f.Syncs[s.Window].Mode
	accesses := s.Call.Operates() || s.Call == Store || s.Call == Load
	switch {
	case accesses && (!win.viewable(s.Kind) || win.Create && s.Kind.Size() > win.Kind.Size()):
		return fmt.Errorf("the window has no view as %v", s.Kind)
	case s.Call.layouts() && !(s.From.sound() && s.To.sound()):
		return errors.New("a layout that cannot be")
	case mode == Idle && !s.Refused, mode == Locked && s.Member != 0:
		return errors.New("in a window that is idle, or for member 0 to lock")
	case mode != Locked && (s.Call == Lock || s.Call == Unlock || s.Call == LockAll || s.Call == UnlockAll) && !s.Refused:
		return fmt.Errorf("a lock in a window of mode %v", mode)
	case (s.Call == Store || s.Call == Load) && s.At+s.Count > win.Counts[s.Rank]*win.Kind.Size()/s.Kind.Size() || s.At < 0 && !s.Refused:
		return errors.New("beyond the own part")
	}
	reasons := c.refusals(s, c.of(s.Window, s.Rank))
	if s.Refused && len(reasons) != 1 || !s.Refused && len(reasons) != 0 {
		return fmt.Errorf("reasons to refuse it are %v", reasons)
	}
	if s.Refused || !accesses && s.Call != Wait && s.Call != Test && s.Call != RFlush {
		return nil
	}
	if win.SameOp && s.Call.combines() && s.Call != CompareAndSwap && s.Op != window.NoOp {
		if chosen := c.sameOp[s.Window]; chosen != 0 && chosen != s.Op+1 {
			return fmt.Errorf("the operation of the window is %v", chosen-1)
		}
		c.sameOp[s.Window] = s.Op + 1
	}
	return checkRequest(f.Steps[:i], s)
}

// checkRequest checks the number of a request.
func checkRequest(before []Step, s *Step) error {
	known := slices.ContainsFunc(before, func(t Step) bool {
		return t.Call.requests() && !t.Refused && t.Rank == s.Rank && t.Request == s.Request && (t.Member == s.Member || s.Call.requests())
	})
	switch {
	case s.Call == Wait || s.Call == Test:
		if !known {
			return errors.New("no earlier step of the member made the request")
		}
	case s.Call.requests():
		if known || s.Request <= 0 {
			return errors.New("a request needs a number of its own, above 0")
		}
	}
	return nil
}

// sound reports whether nothing of the shape is negative or overflows.
func (s *Shape) sound() bool {
	for _, b := range s.Index {
		if b.Offset < 0 || b.Length < 0 || b.Offset > mostBytes || b.Length > mostBytes {
			return false
		}
	}
	return min(s.Blocks, s.Length, s.Stride) >= 0 && max(s.Blocks, s.Length, s.Stride) <= 1<<16 && len(s.Index) <= 1<<16
}

// checkPart checks that accesses of one part do not conflict.
func (p *Program) checkPart(t *part) error {
	for i := range t.segments {
		g := &t.segments[i]
		if g.commutes && !g.locked {
			continue
		}
		if len(g.cells) > mostCells {
			return fmt.Errorf("bytes %d to %d of rank %d in window %d have %d accesses, allowed are %d", g.from, g.to, t.rank, t.window, len(g.cells), mostCells)
		}
		for j, c := range g.cells {
			for _, d := range g.cells[j+1:] {
				a, b := &t.accesses[c.access], &t.accesses[d.access]
				if reason := p.conflict(t, g, a, b); reason != "" {
					return fmt.Errorf("bytes %d to %d of rank %d in window %d: %s: %v and %v", g.from, g.to, t.rank, t.window, reason, a.step, b.step)
				}
			}
		}
	}
	if n := len(t.serialized()); n > mostEpochs {
		return fmt.Errorf("%d lock epochs of rank %d in window %d have to be serialized, allowed are %d", n, t.rank, t.window, mostEpochs)
	}
	return nil
}

// conflict says why two accesses of a segment conflict, "" if they do not.
func (p *Program) conflict(t *part, g *segment, a, b *access) string {
	switch {
	case a.step.Kind != b.step.Kind:
		return "accesses as two element types"
	case g.locked && a.phase != b.phase:
		return "exclusive locks after a loose phase"
	}
	writes := func(a *access) bool { return !a.step.Call.reads() || a.step.Call.combines() }
	if !writes(a) && !writes(b) || p.before(a, b) || p.before(b, a) {
		return ""
	}
	atomic := a.step.Call.combines() && b.step.Call.combines()
	if g.locked {
		if a.epoch >= 0 && b.epoch >= 0 && a.step.Rank != b.step.Rank && (t.epochs[a.epoch].exclusive || t.epochs[b.epoch].exclusive) {
			return ""
		}
		return "accesses that no lock and no flush orders, of what is under exclusive locks"
	}
	if !atomic {
		return "accesses that conflict"
	}
	return ""
}

// serialized returns the lock epochs that access locked segments.
func (t *part) serialized() []int {
	var epochs []int
	for i := range t.segments {
		if !t.segments[i].locked {
			continue
		}
		for _, c := range t.segments[i].cells {
			if e := t.accesses[c.access].epoch; !slices.Contains(epochs, e) {
				epochs = append(epochs, e)
			}
		}
	}
	slices.Sort(epochs)
	return epochs
}
