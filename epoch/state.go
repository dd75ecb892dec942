package epoch

import (
	"fmt"
	"sync/atomic"
)

// access epochs of an origin.
type mode uint8

const (
	modeNone mode = iota
	modeFence
	modeStarting
	modeStarted
	modeCompleting
	modeLocks
	modeLockAll
)

// What an access word says of its target.
const (
	accessClosed uint32 = iota
	accessActive
	accessPassive
)

// phase of a synchronization that blocks.
type phase uint8

const (
	idle phase = iota
	running
	// suspended: begun, announced, and left because its context ended.
	suspended
)

// State is the epochs of one rank on one window.
type State struct {
	rank, size int
	closed     bool

	// access[t] says what operations on target t may do now. Written under the
	// caller's mutex, read by operations without it.
	access []atomic.Uint32

	mode  mode
	fence phase
	// fences counts the fences that this rank has finished.
	fences uint32

	// started is the group of the Start epoch; starts[t] counts the Starts that
	// named t, which is the number of the post each matches and of the
	// complete that ends it.
	started Group
	starts  []uint32

	// posted is the group of the exposure, if exposed; posts[o] counts the
	// Posts that named o.
	exposed bool
	posted  Group
	posts   []uint32
	waiting phase

	// locks[t] is how target t is locked; lockCount counts the targets that are
	// locked or being locked.
	locks     []lockState
	lockCount int
	// lockAll: LockAll or UnlockAll is in progress.
	lockAll phase
}

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
	return fmt.Sprintf("lock kind %d", uint8(k))
}

type lockState struct {
	kind LockKind
	// changing: the lock is being taken or given back.
	changing bool
}

// New is the state of rank in a job of size ranks, with no epoch open.
func New(rank, size int) *State {
	return &State{
		rank: rank, size: size,
		access: make([]atomic.Uint32, size),
		starts: make([]uint32, size),
		posts:  make([]uint32, size),
		locks:  make([]lockState, size),
	}
}

// Open tells whether operations on target are legal now. target is a rank of the
// job. It may be called without the mutex.
func (s *State) Open(target int) bool { return s.access[target].Load() != accessClosed }

// Passive tells whether this rank holds a lock on target, so that Flush is legal.
// It may be called without the mutex.
func (s *State) Passive(target int) bool { return s.access[target].Load() == accessPassive }

func (s *State) setAll(access uint32) {
	for t := range s.access {
		s.access[t].Store(access)
	}
}

func (s *State) setGroup(g Group, access uint32) {
	for _, t := range g.ranks {
		s.access[t].Store(access)
	}
}

// Reached tells whether a count that only grows has come to number, though both
// may have wrapped.
func Reached(count, number uint32) bool { return int32(count-number) >= 0 }
