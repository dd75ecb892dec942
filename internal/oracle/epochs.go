package oracle

import (
	"slices"

	"github.com/onesided/rma/aggregate/reduce"
	"github.com/onesided/rma/epoch"
	"github.com/onesided/rma/window"
)

// epochs are the open epochs of one rank on one window.
type epochs struct {
	fenced, started, posted, all bool
	targets                      []int
	// locks has the kind of lock of each target, or 0.
	locks []window.LockKind
}

// begin opens the epochs that a phase opens for a rank by its synchronization.
func (e *epochs) begin(y *Sync, rank int) {
	switch y.Mode {
	case Fenced:
		e.fenced = true
	case Started:
		e.posted = y.posts(rank)
		if e.started = y.starts(rank); e.started {
			e.targets = y.Targets[rank]
		}
	case AllLocked:
		e.all = true
	}
}

// end closes these epochs.
func (e *epochs) end(y *Sync) {
	e.started, e.posted, e.all = false, false, false
	if y.Mode == Fenced && y.NoSucceed {
		e.fenced = false
	}
}

// step applies a step that is not rejected to epochs.
func (e *epochs) step(s *Step) {
	switch s.Call {
	case Lock:
		e.locks[s.Target] = s.LockKind
	case Unlock:
		e.locks[s.Target] = 0
	case LockAll:
		e.all = true
	case UnlockAll:
		e.all = false
	}
}

func (e *epochs) locked() bool {
	return slices.ContainsFunc(e.locks, func(k window.LockKind) bool { return k != 0 })
}

// access reports whether an access epoch is open.
func (e *epochs) access() bool { return e.fenced || e.started || e.all || e.locked() }

// open reports whether operations on target are legal.
func (e *epochs) open(target int) bool {
	return e.fenced || e.started && slices.Contains(e.targets, target) || e.passive(target)
}

// passive reports whether target may be flushed.
func (e *epochs) passive(target int) bool { return e.all || e.locks[target] != 0 }

// refusals returns the reasons for which a step is rejected: none if it is legal. If there are several, the call may
// give any of them.
func (p *Program) refusals(s *Step, e *epochs) (reasons []error) {
	refuse := func(reason bool, class error) {
		if reason {
			reasons = append(reasons, class)
		}
	}
	win := &p.Windows[s.Window]
	rank := s.Target >= 0 && s.Target < p.Ranks
	switch s.Call {
	case Store, Load, Wait, Test:
		return nil
	case Flush, FlushLocal, RFlush:
		refuse(!rank, window.ErrRank)
		refuse(rank && !e.passive(s.Target), epoch.ErrNotLocked)
	case FlushAll, FlushLocalAll:
		refuse(!e.all && !e.locked(), epoch.ErrNotLocked)
	case Lock:
		refuse(!rank, window.ErrRank)
		refuse(s.LockKind != window.Shared && s.LockKind != window.Exclusive, epoch.ErrLockKind)
		refuse(rank && (e.fenced || e.started || e.all || e.locks[s.Target] != 0), epoch.ErrEpochOpen)
	case Unlock:
		refuse(!rank, window.ErrRank)
		refuse(rank && e.locks[s.Target] == 0, epoch.ErrNotLocked)
	case LockAll:
		refuse(e.access(), epoch.ErrEpochOpen)
	case UnlockAll:
		refuse(!e.all, epoch.ErrNotLocked)
	case WaitNotify:
		refuse(s.Slot < 0 || s.Slot >= win.Slots, window.ErrArgument)
	case Fence:
		refuse(s.Assert > window.NoPrecede|window.NoSucceed|window.NoPut|window.NoStore, epoch.ErrAssert)
		refuse(e.posted || e.started || e.all || e.locked(), epoch.ErrEpochOpen)
	case Start:
		refuse(!p.group(s.Ranks), epoch.ErrGroup)
		refuse(e.access(), epoch.ErrEpochOpen)
	case Post:
		refuse(!p.group(s.Ranks), epoch.ErrGroup)
		refuse(e.posted || e.fenced, epoch.ErrEpochOpen)
	case Group:
		refuse(!p.group(s.Ranks), epoch.ErrGroup)
	case Complete:
		refuse(!e.started, epoch.ErrNotStarted)
	case WaitExposure, TestExposure:
		refuse(!e.posted, epoch.ErrNotPosted)
	case Close:
		refuse(e.access() || e.posted, epoch.ErrEpochOpen)
	case View:
		refuse(!win.viewable(s.Kind), window.ErrAlignment)
	default:
		refuse(!rank, window.ErrRank)
		refuse(rank && !e.open(s.Target), epoch.ErrNoEpoch)
		// AccumulateEach without elements has no displacement.
		somewhere := s.Call != AccumulateEach || s.elements() > 0
		refuse(somewhere && s.At < 0, window.ErrArgument)
		if somewhere && rank && s.At >= 0 {
			room := win.Counts[s.Target] * win.Kind.Size() / s.Kind.Size()
			refuse(s.span() > room || s.At > room-s.span(), window.ErrRange)
		}
		p.arguments(s, refuse)
	}
	return reasons
}

// span returns the number of elements of the target from the step's displacement to the last element that it touches.
func (s *Step) span() int {
	if s.Call.layouts() {
		return s.To.extent()
	}
	return s.elements()
}

// arguments reports the reasons that do not depend on the target.
func (p *Program) arguments(s *Step, refuse func(bool, error)) {
	win := &p.Windows[s.Window]
	if s.Call.layouts() {
		refuse(s.From.elements() != s.To.elements(), window.ErrArgument)
		refuse(s.Call == PutLayout && s.To.overlaps() || s.Call == GetLayout && s.From.overlaps(), window.ErrOverlap)
	}
	refuse(s.Nil, window.ErrArgument)
	refuse(s.Call == PutNotify && (s.Slot < 0 || s.Slot >= win.Slots), window.ErrArgument)
	if !s.Call.combines() {
		return
	}
	card := !win.CardAtomics || s.Kind == reduce.Int64 || s.Kind == reduce.Uint64
	if s.Call == CompareAndSwap {
		refuse(!card, window.ErrPromise)
		return
	}
	card = card && (!win.CardAtomics || s.Op == window.Sum || s.Op == window.NoOp)
	unsupported := reduce.Supported(s.Kind, s.Op) != nil
	refuse(unsupported, reduce.ErrUnsupported)
	most := s.elements()
	switch s.Call {
	case AccumulateLayout:
		most = longestRun(&s.From, &s.To)
	case AccumulateEach:
		most = min(most, 1)
	}
	refuse(!unsupported && !card, window.ErrPromise)
	refuse(!unsupported && win.SingleElement && most > 1 && s.Op != window.NoOp, window.ErrPromise)
}

// longestRun returns the length of the longest run of elements that is contiguous in both shapes.
func longestRun(a, b *Shape) (longest int) {
	var ends []int
	for _, shape := range []*Shape{a, b} {
		end := 0
		shape.each(func(_, n int) {
			end += n
			ends = append(ends, end)
		})
	}
	slices.Sort(ends)
	last := 0
	for _, end := range ends {
		longest = max(longest, end-last)
		last = end
	}
	return longest
}

// group reports whether ranks can be a group.
func (p *Program) group(ranks []int) bool {
	for i, rank := range ranks {
		if rank < 0 || rank >= p.Ranks || slices.Contains(ranks[:i], rank) {
			return false
		}
	}
	return true
}

// viewable reports whether the window can be viewed as elements of kind.
func (w *Window) viewable(kind reduce.Kind) bool {
	for _, count := range w.Counts {
		if count*w.Kind.Size()%kind.Size() != 0 {
			return false
		}
	}
	return true
}
