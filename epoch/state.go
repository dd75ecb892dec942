package epoch

import (
	"fmt"
	"sync/atomic"

	"github.com/onesided/rma/internal/latch"
)

// A State holds the epochs of one rank on one window.
type State struct {
	// all is the access to every target, access[t] the access to target t. Fence and LockAll epochs set all, so that
	// one store opens them whatever the number of ranks. Start and Lock epochs set access. Between two kinds of epochs
	// both are closed, so the result of two loads was true at some moment between them. Both are written under the
	// caller's mutex and read without it.
	all    atomic.Uint32
	access []atomic.Uint32

	rank, size int
	closed     bool

	// mode is the kind of the access epoch. step is the step of a Start or LockAll epoch.
	mode mode
	step step

	// fence is the step of a Fence and asserted its assertions. fences counts the Fences that ended.
	fence    step
	asserted Assert
	fences   uint32

	// started is the group of the Start epoch. starts[t] counts the Starts that named t. notified is how many ranks a
	// suspended Complete or UnlockAll has notified. No two of them are suspended at a time.
	started  Group
	starts   []uint32
	notified int

	// posted is the group of the exposure if exposed. waiting is the step of its Post or Wait, and suspended only for a
	// Post, which has notified postNotified ranks. posts[o] counts the Posts that named o.
	exposed      bool
	posted       Group
	waiting      step
	postNotified int
	posts        []uint32

	// locks[t] is the lock of target t. named counts the targets with a lock. held counts the locks that are neither
	// being taken nor being released.
	locks       []lock
	named, held int
}

// mode is a kind of access epoch.
type mode uint8

const (
	modeNone mode = iota
	modeFence
	modeStart
	modeLocks
	modeLockAll
)

// step is the progress of an epoch between the calls that open and close it.
type step uint8

const (
	// settled: no call is in progress.
	settled step = iota
	// opening and closing: the call is in progress in a goroutine.
	opening
	closing
	// suspended: the closing call, or a Post, returned early: its context ended, or a resource was missing.
	suspended
)

// moving reports whether a call is in progress.
func (p step) moving() bool { return p == opening || p == closing }

// The values of State.all and State.access.
const (
	accessClosed uint32 = iota
	accessActive
	accessPassive
)

// New returns the state of rank in a job of size ranks, with no epoch open.
func New(rank, size int) *State {
	return &State{
		rank: rank, size: size,
		access: make([]atomic.Uint32, size),
		starts: make([]uint32, size),
		posts:  make([]uint32, size),
		locks:  make([]lock, size),
	}
}

// Open reports whether operations on target are legal now. It may be called without the mutex.
func (s *State) Open(target int) bool {
	return s.all.Load() != accessClosed || s.access[target].Load() != accessClosed
}

// Passive reports whether this rank holds a lock on target, so that Flush is legal. It may be called without the mutex.
func (s *State) Passive(target int) bool {
	return s.all.Load() == accessPassive || s.access[target].Load() == accessPassive
}

// openAll and openOne open an epoch, unless the state was abandoned.
func (s *State) openAll(access uint32) {
	if !s.closed {
		latch.Release(&s.all, access)
	}
}

func (s *State) openOne(target int, access uint32) {
	if !s.closed {
		latch.Release(&s.access[target], access)
	}
}

// Close ends the state: every later call returns an ErrClosed. If an epoch is open or a call in progress, Close returns
// an ErrEpochOpen and changes nothing.
func (s *State) Close() error {
	if err := s.LeftOpen("Close"); err != nil {
		return err
	}
	s.closed = true
	return nil
}

// LeftOpen returns an ErrEpochOpen if an epoch is open or a call in progress, and nil otherwise. call is a call after
// which no other call could close that epoch.
func (s *State) LeftOpen(call string) error {
	if s.closed || s.fence != settled || s.mode != modeNone || s.exposed {
		return s.reject(call, ErrEpochOpen, s.wayOut())
	}
	return nil
}

// Abandon ends the state whatever is open or in progress. Every later operation and Begin… returns an ErrClosed. The
// call that ends a call in progress opens nothing.
func (s *State) Abandon() {
	s.closed = true
	s.all.Store(accessClosed)
	for t := range s.access {
		s.access[t].Store(accessClosed)
	}
}

// Reached reports whether a counter that only grows has reached number. Both may have wrapped.
func Reached(count, number uint32) bool { return int32(count-number) >= 0 }

// LockKind is the kind of a lock on a target.
type LockKind uint8

const (
	// Shared locks of several origins may be held at once.
	Shared LockKind = iota + 1
	// Exclusive excludes every other lock on the target.
	Exclusive
)

func (k LockKind) String() string {
	switch k {
	case Shared:
		return "shared"
	case Exclusive:
		return "exclusive"
	}
	return fmt.Sprintf("LockKind(%d)", uint8(k))
}
