package epoch

import (
	"errors"
	"fmt"
)

var (
	// ErrNoEpoch reports an operation without an access epoch to its target.
	ErrNoEpoch = errors.New("no access epoch to the target")
	// ErrOtherRanks is an ErrNoEpoch: a Start epoch is open, but its group lacks the target.
	ErrOtherRanks = fmt.Errorf("%w, the group of Start does not have it", ErrNoEpoch)
	// ErrOtherLocks is an ErrNoEpoch: only other targets are locked.
	ErrOtherLocks = fmt.Errorf("%w, the locks are of other ranks", ErrNoEpoch)
	// ErrChanging is an ErrNoEpoch: the epoch is being opened or closed.
	ErrChanging = fmt.Errorf("%w, it is being opened or closed", ErrNoEpoch)

	// ErrEpochOpen reports a call that would nest or mix epochs, or close a window with an open epoch.
	ErrEpochOpen = errors.New("another epoch is open")
	// ErrBusy reports that the epoch is being opened or closed: by another goroutine, or by an Unlock, UnlockAll or Post
	// that was interrupted.
	ErrBusy = errors.New("the epoch is being opened or closed")
	// ErrNotStarted reports a Complete without Start.
	ErrNotStarted = errors.New("no Start epoch is open")
	// ErrNotPosted reports a Wait or Test without Post, or a Start that no Post has matched.
	ErrNotPosted = errors.New("no exposure is posted")
	// ErrNotLocked reports an Unlock or flush without Lock, or an UnlockAll without LockAll.
	ErrNotLocked = errors.New("not locked")
	// ErrClosed reports that the window is closed.
	ErrClosed = errors.New("window is closed")

	// ErrGroup reports a group with a rank that does not exist or is named twice.
	ErrGroup = errors.New("invalid group")
	// ErrAssert reports assertions that do not exist, that the call does not take, or that differ from those of the
	// Fence that is continued.
	ErrAssert = errors.New("invalid assertions")
	// ErrLockKind reports a lock that is neither Shared nor Exclusive.
	ErrLockKind = errors.New("invalid kind of lock")
)

// A CallError reports a call that is illegal now. The state is unchanged.
type CallError struct {
	// Rank is the rank that made the call.
	Rank int
	// Call is the call, with its target or assertions if it has them.
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

// Reason returns why the call is illegal and what is allowed instead, without the call.
func (e *CallError) Reason() string {
	if e.Class == ErrEpochOpen || e.Class == ErrNoEpoch && e.Open == nothingOpen {
		// Open says what the class does.
		return e.Open + "; " + e.Remedy
	}
	return fmt.Sprintf("%v: %s; %s", e.Class, e.Open, e.Remedy)
}

// Unwrap returns the class.
func (e *CallError) Unwrap() error { return e.Class }

// reject returns the error of a call. On a closed window the class is always ErrClosed.
func (s *State) reject(call string, class error, remedy string) error {
	if s.closed {
		class, remedy = ErrClosed, "make another window"
	}
	return &CallError{Rank: s.rank, Call: call, Open: s.Describe(), Remedy: remedy, Class: class}
}

// Reject returns the error of an illegal operation on target, after Open returned false. The caller holds the mutex.
// Another goroutine may have opened an epoch since Open; that does not make the operation legal.
func (s *State) Reject(operation string, target int) error {
	class, remedy := ErrChanging, "order operations after the call that opens their epoch and before the one that closes it"
	switch {
	case s.fence == suspended || s.mode == modeLockAll && s.step == suspended:
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
	return s.reject(fmt.Sprintf("%s on rank %d", operation, target), class, remedy)
}
