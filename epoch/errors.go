package epoch

import (
	"errors"
	"fmt"
)

var (
	// ErrNoEpoch: an operation without an access epoch to its target.
	ErrNoEpoch = errors.New("no access epoch to the target")
	// ErrOtherRanks is an ErrNoEpoch: a Start epoch is open, its group does not
	// have the target.
	ErrOtherRanks = fmt.Errorf("%w, the group of Start does not have it", ErrNoEpoch)
	// ErrOtherLocks is an ErrNoEpoch: other targets are locked.
	ErrOtherLocks = fmt.Errorf("%w, the locks are of other ranks", ErrNoEpoch)
	// ErrChanging is an ErrNoEpoch: the epoch is not open yet, or it is being
	// closed.
	ErrChanging = fmt.Errorf("%w, it is being opened or closed", ErrNoEpoch)

	// ErrEpochOpen: the call would nest or mix epochs, or close a window with one
	// open.
	ErrEpochOpen = errors.New("another epoch is open")
	// ErrBusy: another goroutine is opening or closing the epoch that the call is
	// about.
	ErrBusy = errors.New("in progress in another goroutine")
	// ErrNotStarted: Complete without Start.
	ErrNotStarted = errors.New("no Start epoch is open")
	// ErrNotPosted: Wait or Test without Post, or a Start that no Post has matched.
	ErrNotPosted = errors.New("no exposure is posted")
	// ErrNotLocked: Unlock or flush without Lock, UnlockAll without LockAll.
	ErrNotLocked = errors.New("not locked")
	// ErrClosed: the window is closed.
	ErrClosed = errors.New("window is closed")

	// ErrGroup: a group with a rank that does not exist or is named twice.
	ErrGroup = errors.New("invalid group")
	// ErrAssert: assertions that do not exist, that the call does not take, or that are
	// not those of the Fence that is continued.
	ErrAssert = errors.New("invalid assertions")
	// ErrLockKind: a lock that is neither Shared nor Exclusive.
	ErrLockKind = errors.New("invalid kind of lock")
)

// A CallError is a call that is illegal now. The state is unchanged.
type CallError struct {
	// Rank made the call.
	Rank int
	// Call is the call, with its target or assertions where it has them.
	Call string
	// Open describes the epochs that are open.
	Open string
	// Remedy says what is allowed instead.
	Remedy string
	// Class is one of this package's sentinels.
	Class error
}

func (e *CallError) Error() string {
	return fmt.Sprintf("epoch: rank %d: %s: %s", e.Rank, e.Call, e.Reason())
}

// Reason is why the call is illegal, and what is allowed instead, without the call.
func (e *CallError) Reason() string { return fmt.Sprintf("%v: %s; %s", e.Class, e.Open, e.Remedy) }

// Unwrap gives the class.
func (e *CallError) Unwrap() error { return e.Class }

// refuse makes the error of a call. On a closed window every call is an ErrClosed,
// whatever else is wrong with it.
func (s *State) refuse(call string, class error, remedy string) error {
	if s.closed {
		class, remedy = ErrClosed, "make another window"
	}
	return &CallError{Rank: s.rank, Call: call, Open: s.Describe(), Remedy: remedy, Class: class}
}

// Refuse says why an operation on target is illegal, after Open gave false. It is
// called under the mutex, which another goroutine may have used in between: an
// epoch that it opened does not make the operation legal after the fact.
func (s *State) Refuse(operation string, target int) error {
	class, remedy := ErrChanging, "order operations after the call that opens their epoch and before the one that closes it"
	switch {
	case s.fence == suspended:
		remedy = s.wayOutOfAccess()
	case s.fence != settled || s.mode == modeFence || s.mode == modeLockAll:
	case s.mode == modeNone:
		class, remedy = ErrNoEpoch, "open one by Fence, by Start with a group that has the target, or by Lock or LockAll"
	case s.mode == modeStart && !s.started.Contains(target):
		class, remedy = ErrOtherRanks, "name the target in the group of Start"
	case s.mode == modeStart && s.step == suspended:
		remedy = s.wayOutOfAccess()
	case s.mode == modeLocks && s.locks[target].kind == 0:
		class, remedy = ErrOtherLocks, "Lock the target too"
	case s.mode == modeLocks && s.locks[target].step == suspended:
		remedy = unlockAgain
	}
	return s.refuse(fmt.Sprintf("%s on rank %d", operation, target), class, remedy)
}
