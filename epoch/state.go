package epoch

import (
	"fmt"
	"sync/atomic"

	"github.com/onesided/rma/internal/latch"
)

// State is the epochs of one rank on one window.
type State struct {
	// all says what operations on any target may do now, access[t] what those on
	// target t may do. A fence or LockAll epoch is in all, so that one store
	// opens it however many ranks there are; Start and Lock epochs are in
	// access. Between one kind and the other both are closed, so what a reader
	// puts together from two loads was true at some moment between them.
	// Written under the caller's mutex, read without it.
	all    atomic.Uint32
	access []atomic.Uint32

	rank, size int
	closed     bool

	// mode is the kind of access epoch, step where it is in opening and closing
	// if it is one of Start or LockAll.
	mode mode
	step step

	// fence is where a Fence is and asserted its assertions. fences counts those
	// that ended.
	fence    step
	asserted Assert
	fences   uint32

	// started is the group of the Start epoch, told how many of them a
	// suspended Complete has told. starts[t] counts the Starts that named t.
	started Group
	told    int
	starts  []uint32

	// posted is the group of the exposure, if exposed; waiting is where its Post or
	// Wait is. posts[o] counts the Posts that named o.
	exposed bool
	posted  Group
	waiting step
	posts   []uint32

	// locks[t] is the lock of target t. named counts the targets that have one,
	// held those whose lock is neither being taken nor being given back.
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

// step is where an epoch is between the calls that open and close it.
type step uint8

const (
	// settled: no call is in progress.
	settled step = iota
	// opening and closing: the call is in progress in some goroutine.
	opening
	closing
	// suspended: the closing call was left because its context ended.
	suspended
)

// moving tells whether a call is in progress.
func (p step) moving() bool { return p == opening || p == closing }

// What the words of access say.
const (
	accessClosed uint32 = iota
	accessActive
	accessPassive
)

// New is the state of rank in a job of size ranks, with no epoch open.
func New(rank, size int) *State {
	return &State{
		rank: rank, size: size,
		access: make([]atomic.Uint32, size),
		starts: make([]uint32, size),
		posts:  make([]uint32, size),
		locks:  make([]lock, size),
	}
}

// Open tells whether operations on target are legal now. It may be called without
// the mutex.
func (s *State) Open(target int) bool {
	return s.all.Load() != accessClosed || s.access[target].Load() != accessClosed
}

// Passive tells whether this rank holds a lock on target, so that Flush is legal.
// It may be called without the mutex.
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

// Close ends the state: every later call is an ErrClosed. An open epoch, or a call
// in progress, is an ErrEpochOpen and changes nothing.
func (s *State) Close() error {
	if err := s.LeftOpen("Close"); err != nil {
		return err
	}
	s.closed = true
	return nil
}

// LeftOpen is the error of a call behind which nobody can close what is open, an ErrEpochOpen, nil if nothing is.
func (s *State) LeftOpen(call string) error {
	if s.closed || s.fence != settled || s.mode != modeNone || s.exposed {
		return s.refuse(call, ErrEpochOpen, s.wayOut())
	}
	return nil
}

// Abandon ends the state whatever is open or in progress: every later operation and
// Begin… is an ErrClosed, and what ends a call in progress opens nothing.
func (s *State) Abandon() {
	s.closed = true
	s.all.Store(accessClosed)
	for t := range s.access {
		s.access[t].Store(accessClosed)
	}
}

// Reached tells whether a count that only grows has come to number, though both
// may have wrapped.
func Reached(count, number uint32) bool { return int32(count-number) >= 0 }

// LockKind is how a target is locked.
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
