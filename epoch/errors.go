package epoch

import (
	"errors"
	"fmt"
)

var (
	// ErrNoEpoch: an operation or flush without an access epoch to its target.
	ErrNoEpoch = errors.New("no access epoch to the target")
	// ErrEpochOpen: the call would nest or mix epochs.
	ErrEpochOpen = errors.New("another epoch is open")
	// ErrNotStarted: Complete without Start.
	ErrNotStarted = errors.New("no Start epoch is open")
	// ErrNotPosted: Wait or Test without Post.
	ErrNotPosted = errors.New("no exposure is posted")
	// ErrNotLocked: Unlock without Lock, UnlockAll without LockAll.
	ErrNotLocked = errors.New("not locked")
	// ErrBusy: the same synchronization is in progress in another goroutine.
	ErrBusy = errors.New("in progress in another goroutine")
	// ErrGroup: a group with a rank that does not exist or is named twice.
	ErrGroup = errors.New("invalid group")
	// ErrAssert: assertions that the call does not take.
	ErrAssert = errors.New("invalid assertion")
	// ErrLockKind: a lock that is neither Shared nor Exclusive.
	ErrLockKind = errors.New("invalid kind of lock")
	// ErrClosed: the window is closed.
	ErrClosed = errors.New("window is closed")
)

// A CallError is a call that is illegal now. The state is unchanged.
type CallError struct {
	// Call is the call, with its target where it has one.
	Call string
	// Open describes the epochs that are open.
	Open string
	// Remedy says what is allowed instead.
	Remedy string
	// Class is one of this package's sentinels.
	Class error
}

func (e *CallError) Error() string {
	return fmt.Sprintf("epoch: %s: %v: %s; %s", e.Call, e.Class, e.Open, e.Remedy)
}

// Unwrap gives the class.
func (e *CallError) Unwrap() error { return e.Class }

func (s *State) refuse(call string, class error, remedy string) error {
	if s.closed {
		class, remedy = ErrClosed, "make another window"
	}
	return &CallError{Call: call, Open: s.Describe(), Remedy: remedy, Class: class}
}

// Describe says which epochs are open.
func (s *State) Describe() string {
	if s.closed {
		return "the window is closed"
	}
	var open string
	switch s.mode {
	case modeNone:
		open = "no access epoch is open"
	case modeFence:
		open = "a fence epoch is open"
	case modeStarting:
		open = fmt.Sprintf("Start to ranks %v is in progress", s.started.ranks)
	case modeStarted:
		open = fmt.Sprintf("a Start epoch to ranks %v is open", s.started.ranks)
	case modeCompleting:
		open = fmt.Sprintf("Complete to ranks %v is in progress", s.started.ranks)
	case modeLocks:
		open = "locked are" + s.describeLocks()
	case modeLockAll:
		open = "all ranks are locked by LockAll"
	}
	switch {
	case s.fence == running:
		open += ", Fence is in progress"
	case s.fence == suspended:
		open += ", a cancelled Fence is to be continued"
	}
	if s.exposed {
		open += fmt.Sprintf(", an exposure to ranks %v is posted", s.posted.ranks)
	}
	return open
}

func (s *State) describeLocks() string {
	var text string
	for t, l := range s.locks {
		if l.kind != 0 {
			text += fmt.Sprintf(" rank %d (%v)", t, l.kind)
		}
	}
	return text
}

// Refuse says why an operation on target is illegal now. It is called with the
// mutex, after Open gave false.
func (s *State) Refuse(operation string, target int) error {
	remedy := "open one by Fence, by Start with a group that has the target, or by Lock or LockAll"
	switch s.mode {
	case modeStarted:
		remedy = "name the target in the group of Start"
	case modeLocks:
		remedy = "lock the target"
	case modeLockAll, modeFence, modeStarting, modeCompleting:
		remedy = "the epoch is being opened or closed by another goroutine"
	}
	return s.refuse(fmt.Sprintf("%s on rank %d", operation, target), ErrNoEpoch, remedy)
}
