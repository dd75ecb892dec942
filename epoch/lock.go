package epoch

import "fmt"

// BeginLock starts a lock of target. It is followed by EndLock or AbortLock.
func (s *State) BeginLock(kind LockKind, target int) error {
	call := fmt.Sprintf
	switch {
	case s.closed:
		return s.refuse(call("Lock of rank %d", target), ErrClosed, "")
	case kind != Shared && kind != Exclusive:
		return s.refuse(call("Lock of rank %d", target), ErrLockKind, "allowed are Shared and Exclusive")
	case s.fence != idle || s.mode != modeNone && s.mode != modeLocks:
		return s.refuse(call("Lock of rank %d", target), ErrEpochOpen, s.howToClose())
	case s.locks[target].changing:
		return s.refuse(call("Lock of rank %d", target), ErrBusy, "lock a target from one goroutine")
	case s.locks[target].kind != 0:
		return s.refuse(call("Lock of rank %d", target), ErrEpochOpen, "Unlock it first")
	}
	s.mode = modeLocks
	s.lockCount++
	s.locks[target] = lockState{kind, true}
	return nil
}

// EndLock opens the epoch to target.
func (s *State) EndLock(target int) {
	s.locks[target].changing = false
	s.access[target].Store(accessPassive)
}

// AbortLock goes back to before BeginLock.
func (s *State) AbortLock(target int) { s.unlocked(target) }

// BeginUnlock ends the operations on target and gives the kind of its lock. It is
// followed by EndUnlock.
func (s *State) BeginUnlock(target int) (LockKind, error) {
	l := &s.locks[target]
	switch {
	case s.closed:
		return 0, s.refuse(fmt.Sprintf("Unlock of rank %d", target), ErrClosed, "")
	case s.mode == modeLockAll:
		return 0, s.refuse(fmt.Sprintf("Unlock of rank %d", target), ErrNotLocked, "UnlockAll ends what LockAll opened")
	case l.kind == 0:
		return 0, s.refuse(fmt.Sprintf("Unlock of rank %d", target), ErrNotLocked, "Unlock ends what Lock opened")
	case l.changing:
		return 0, s.refuse(fmt.Sprintf("Unlock of rank %d", target), ErrBusy, "lock and unlock a target from one goroutine")
	}
	l.changing = true
	s.access[target].Store(accessClosed)
	return l.kind, nil
}

// EndUnlock ends the epoch to target.
func (s *State) EndUnlock(target int) { s.unlocked(target) }

func (s *State) unlocked(target int) {
	s.locks[target] = lockState{}
	if s.lockCount--; s.lockCount == 0 {
		s.mode = modeNone
	}
}

// BeginLockAll starts a shared lock of every rank. It is followed by EndLockAll or
// AbortLockAll.
func (s *State) BeginLockAll() error {
	switch {
	case s.closed:
		return s.refuse("LockAll", ErrClosed, "")
	case s.mode != modeNone || s.fence != idle:
		return s.refuse("LockAll", ErrEpochOpen, s.howToClose())
	}
	s.mode = modeLockAll
	s.lockAll = running
	return nil
}

// EndLockAll opens the epoch to all ranks.
func (s *State) EndLockAll() {
	s.lockAll = idle
	s.setAll(accessPassive)
}

// AbortLockAll goes back to before BeginLockAll.
func (s *State) AbortLockAll() {
	s.lockAll = idle
	s.mode = modeNone
}

// BeginUnlockAll ends the operations of a LockAll epoch. It is followed by
// EndUnlockAll.
func (s *State) BeginUnlockAll() error {
	switch {
	case s.closed:
		return s.refuse("UnlockAll", ErrClosed, "")
	case s.mode == modeLocks:
		return s.refuse("UnlockAll", ErrNotLocked, "Unlock ends what Lock opened")
	case s.mode != modeLockAll:
		return s.refuse("UnlockAll", ErrNotLocked, "UnlockAll ends what LockAll opened")
	case s.lockAll != idle:
		return s.refuse("UnlockAll", ErrBusy, "call it from one goroutine")
	}
	s.lockAll = running
	s.setAll(accessClosed)
	return nil
}

// EndUnlockAll ends the epoch.
func (s *State) EndUnlockAll() {
	s.lockAll = idle
	s.mode = modeNone
}

// CheckFlush says why a flush of target is illegal now, nil if it is legal.
func (s *State) CheckFlush(call string, target int) error {
	if !s.closed && s.Passive(target) {
		return nil
	}
	return s.refuse(fmt.Sprintf("%s of rank %d", call, target), ErrNoEpoch, "lock the target by Lock or LockAll")
}

// CheckFlushAll says why a flush of all ranks is illegal now, nil if it is legal.
func (s *State) CheckFlushAll(call string) error {
	if !s.closed && (s.mode == modeLocks || s.mode == modeLockAll) {
		return nil
	}
	return s.refuse(call, ErrNoEpoch, "lock by Lock or LockAll")
}

// Close ends the state: every later call is an ErrClosed. An open epoch, or a call
// in progress, is an ErrEpochOpen and changes nothing.
func (s *State) Close() error {
	switch {
	case s.closed:
		return s.refuse("Close", ErrClosed, "")
	case s.fence != idle:
		return s.refuse("Close", ErrEpochOpen, s.howToClose())
	case s.mode != modeNone:
		return s.refuse("Close", ErrEpochOpen, s.howToClose())
	case s.exposed:
		return s.refuse("Close", ErrEpochOpen, "Wait for the exposure first")
	}
	s.closed = true
	return nil
}
