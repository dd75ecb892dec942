package epoch

import (
	"fmt"

	"github.com/onesided/rma/internal/latch"
)

// A lock describes how a target is locked. kind is 0 if the target is not locked.
type lock struct {
	kind LockKind
	step step
}

// unlockAgain is the remedy for an Unlock that was suspended.
const unlockAgain = "call Unlock again, which continues it"

// BeginLock starts a lock of target. EndLock or AbortLock follows.
func (s *State) BeginLock(kind LockKind, target int) error {
	switch l := s.locks[target]; {
	case kind != Shared && kind != Exclusive:
		return s.rejectLock(kind, target, ErrLockKind, "allowed are Shared and Exclusive")
	case s.closed || s.fence != settled || s.mode != modeNone && s.mode != modeLocks:
		return s.rejectLock(kind, target, ErrEpochOpen, s.wayOutOfAccess())
	case l.step.moving():
		return s.rejectLock(kind, target, ErrBusy, "let its Lock or Unlock return first")
	case l.kind != 0:
		return s.rejectLock(kind, target, ErrEpochOpen, "Unlock it first")
	}
	s.mode = modeLocks
	s.named++
	s.locks[target] = lock{kind, opening}
	return nil
}

func (s *State) rejectLock(kind LockKind, target int, class error, remedy string) error {
	return s.reject(fmt.Sprintf("Lock(%v) of rank %d", kind, target), class, remedy)
}

// EndLock opens the epoch to target.
func (s *State) EndLock(target int) {
	s.locks[target].step = settled
	s.held++
	s.openOne(target, accessPassive)
}

// AbortLock restores the state before BeginLock.
func (s *State) AbortLock(target int) { s.unlocked(target) }

// BeginUnlock ends the operations on target, or continues a suspended Unlock. It returns the kind of the lock.
// EndUnlock or SuspendUnlock follows.
func (s *State) BeginUnlock(target int) (LockKind, error) {
	l := &s.locks[target]
	switch {
	case s.closed || l.kind == 0:
		return 0, s.rejectUnlock(target, ErrNotLocked, s.wayToUnlock("Unlock"))
	case l.step.moving():
		return 0, s.rejectUnlock(target, ErrBusy, "let its Lock or Unlock return first")
	}
	if l.step != suspended {
		s.held--
	}
	l.step = closing
	latch.Release(&s.access[target], accessClosed)
	return l.kind, nil
}

func (s *State) rejectUnlock(target int, class error, remedy string) error {
	return s.reject(fmt.Sprintf("Unlock of rank %d", target), class, remedy)
}

// EndUnlock ends the epoch to target, also if the target has failed and could not be notified.
func (s *State) EndUnlock(target int) { s.unlocked(target) }

// SuspendUnlock suspends an Unlock whose target may already have been notified. Only another Unlock may follow, which
// continues it.
func (s *State) SuspendUnlock(target int) { s.locks[target].step = suspended }

func (s *State) unlocked(target int) {
	s.locks[target] = lock{}
	if s.named--; s.named == 0 {
		s.mode = modeNone
	}
}

// BeginLockAll starts a shared lock of every rank. EndLockAll or AbortLockAll follows.
func (s *State) BeginLockAll() error {
	switch {
	case s.mode == modeLockAll && s.step.moving():
		return s.reject("LockAll", ErrBusy, s.wayOutOfAccess())
	case s.closed || s.mode != modeNone || s.fence != settled:
		return s.reject("LockAll", ErrEpochOpen, s.wayOutOfAccess())
	}
	s.mode = modeLockAll
	s.step = opening
	return nil
}

// EndLockAll opens the epoch to all ranks.
func (s *State) EndLockAll() {
	s.step = settled
	s.openAll(accessPassive)
}

// AbortLockAll restores the state before BeginLockAll.
func (s *State) AbortLockAll() { s.EndUnlockAll() }

// BeginUnlockAll ends the operations of a LockAll epoch, or continues a suspended UnlockAll. Each rank that is not
// counted by Notified must be given its lock back. EndUnlockAll or SuspendUnlockAll follows.
func (s *State) BeginUnlockAll() error {
	switch {
	case s.closed || s.mode != modeLockAll:
		return s.reject("UnlockAll", ErrNotLocked, s.wayToUnlock("UnlockAll"))
	case s.step.moving():
		return s.reject("UnlockAll", ErrBusy, s.wayOutOfAccess())
	}
	s.step = closing
	latch.Release(&s.all, accessClosed)
	return nil
}

// SuspendUnlockAll suspends an UnlockAll that has given back the locks of the first n ranks. Only another UnlockAll may
// follow, which continues it.
func (s *State) SuspendUnlockAll(n int) {
	s.step = suspended
	s.notified = n
}

// EndUnlockAll ends the epoch, also if a rank has failed and could not be notified.
func (s *State) EndUnlockAll() {
	s.step = settled
	s.mode = modeNone
	s.notified = 0
}

// CheckFlush returns the error of an illegal flush of target, or nil if it is legal now. call is Flush or FlushLocal.
func (s *State) CheckFlush(call string, target int) error {
	if s.Passive(target) {
		return nil
	}
	call = fmt.Sprintf("%s of rank %d", call, target)
	switch {
	case s.locks[target].step == suspended:
		return s.reject(call, ErrBusy, unlockAgain)
	case s.mode == modeLockAll && s.step == suspended:
		return s.reject(call, ErrBusy, s.wayOutOfAccess())
	case s.locks[target].kind != 0 || s.mode == modeLockAll:
		return s.reject(call, ErrBusy, "order it between locking and unlocking the target")
	}
	return s.reject(call, ErrNotLocked, s.wayToLock("lock the target by Lock or LockAll"))
}

// CheckFlushAll returns the error of an illegal flush of all ranks, or nil if it is legal now. call is FlushAll or
// FlushLocalAll.
func (s *State) CheckFlushAll(call string) error {
	switch {
	case !s.closed && (s.held != 0 || s.all.Load() == accessPassive):
		return nil
	case s.mode == modeLockAll && s.step == suspended:
		return s.reject(call, ErrBusy, s.wayOutOfAccess())
	case s.mode == modeLocks || s.mode == modeLockAll:
		return s.reject(call, ErrBusy, "order it between locking and unlocking")
	}
	return s.reject(call, ErrNotLocked, s.wayToLock("lock by Lock or LockAll"))
}
