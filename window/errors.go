package window

import (
	"errors"
	"fmt"

	"github.com/onesided/rma/epoch"
	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/world"
)

var (
	// ErrArgument means that an argument is never valid, such as a negative displacement, a nil result, or layouts that
	// do not fit. It is world.ErrArgument.
	ErrArgument = world.ErrArgument
	// ErrRank means that the job has no such rank.
	ErrRank = errors.New("no such rank")
	// ErrRange: the operation leaves the target's window.
	ErrRange = errors.New("out of the target's window")
	// ErrOverlap: a layout that writes an element twice.
	ErrOverlap = errors.New("overlapping layout")
	// ErrHint: a call that breaks a promise given as an option at creation.
	ErrHint = errors.New("promise given at creation broken")
	// ErrAlignment: a window that cannot be viewed as another element type.
	ErrAlignment = errors.New("window does not fit the element type")
	// errDescription: what a rank has told of its part cannot be.
	errDescription = errors.New("impossible part of a window")
	// ErrAttached: a call that a window has not that was attached to.
	ErrAttached = errors.New("a window that was attached to has locks only, for operations on rank 0 between them: Lock, LockAll, Flush, Unlock, UnlockAll")
	// ErrServed: the window is served to clients.
	ErrServed = errors.New("the window is served: end Serve first")
	// ErrReadOnly: an operation that writes, or an exclusive lock, on a window that is served read-only.
	ErrReadOnly = errors.New("the window is served read-only: clients have Get, NoOp and shared locks")
	// ErrNotServed: no window is served under the name, or not as what is asked for.
	ErrNotServed = errors.New("no such window")
	// ErrDeparted: the rank has closed the window, as it heard that another has failed. It is a world.ErrLeft.
	ErrDeparted error = parted{}
	// ErrNoSeat: as many clients as it has seats for (option Seats) are attached to the window, or the session has its share
	// of them (Limits.SeatsPerSession).
	ErrNoSeat = errors.New("all seats are taken")
	// ErrMismatch means that ranks disagree on a collective call or its arguments. It is world.ErrMismatch.
	ErrMismatch = world.ErrMismatch
)

// Errors of calls that do not fit the epochs that are open. They are those of package epoch. After one, nothing has changed.
var (
	// ErrNoEpoch means that an operation has no access epoch to its target.
	ErrNoEpoch = epoch.ErrNoEpoch
	// ErrEpochOpen means that the call would nest or mix epochs, or close a window with an open epoch.
	ErrEpochOpen = epoch.ErrEpochOpen
	// ErrBusy means that another goroutine is opening or closing the epoch.
	ErrBusy = epoch.ErrBusy
	// ErrNotStarted means that Complete has no Start.
	ErrNotStarted = epoch.ErrNotStarted
	// ErrNotPosted means that Wait or Test has no Post, or that no Post has matched a Start.
	ErrNotPosted = epoch.ErrNotPosted
	// ErrNotLocked means that Unlock or a flush has no Lock, or UnlockAll no LockAll.
	ErrNotLocked = epoch.ErrNotLocked
	// ErrClosed means that the window is closed.
	ErrClosed = epoch.ErrClosed
	// ErrGroup means that a group has a rank that does not exist or is named twice.
	ErrGroup = epoch.ErrGroup
	// ErrAssert means that assertions do not exist, or that the call does not take them.
	ErrAssert = epoch.ErrAssert
	// ErrLockKind means that a lock is neither Shared nor Exclusive.
	ErrLockKind = epoch.ErrLockKind
)

type parted struct{}

func (parted) Error() string        { return "has closed the window after a failure" }
func (parted) Is(target error) bool { return target == world.ErrLeft }

// An OpError is an operation that was refused, with nothing moved.
type OpError struct {
	// Op is the method's name.
	Op string
	// Target, Displacement and Count (elements) are the operation's.
	Target, Displacement, Count int
	// Cause is one of this package's sentinels, an error of package epoch, a
	// *world.PeerError or a *verbs.CapabilityError, in more words.
	Cause error
}

func (e *OpError) Error() string {
	head := fmt.Sprintf("window: %s of %s at displacement %d of rank %d: ", e.Op, errtext.Count(e.Count, "element"), e.Displacement, e.Target)
	var illegal *epoch.CallError
	if errors.As(e.Cause, &illegal) {
		// Which operation it is stands here.
		return head + illegal.Reason()
	}
	return errtext.After(head, e.Cause)
}

// Unwrap gives the cause.
func (e *OpError) Unwrap() error { return e.Cause }

// A MismatchError says that ranks passed different arguments to a collective
// call, or made different ones. Every rank gets it. It is an ErrMismatch.
type MismatchError struct {
	// Call is the collective call, and What the argument, empty if it is the call itself. Rank is a rank whose
	// Value differs from that of WantRank, which is Want.
	Call, What     string
	Rank, WantRank int
	Value, Want    any
	// Number counts the Fences and the Close of a window from 1. It is 0 for a call that makes one.
	Number uint32
}

func (e *MismatchError) Error() string {
	where, verb, made := "", "called", "called"
	if e.Number != 0 {
		where = fmt.Sprintf("as Fence or Close %d of the window, which all have to call alike, ", e.Number)
	}
	if e.What != "" {
		verb, made = "passed", "passed "+e.What
	}
	return fmt.Sprintf("window: %s: %v: %srank %d %s %v, rank %d %s %v", e.Call, ErrMismatch, where, e.Rank, made, e.Value, e.WantRank, verb, e.Want)
}

// Is makes it an ErrMismatch.
func (e *MismatchError) Is(target error) bool { return target == ErrMismatch }

// A CreateError says that a rank could not make its part of a window. Every rank
// gets it; the rank itself has the cause, the others have its text.
type CreateError struct {
	Rank  int
	Cause error
}

func (e *CreateError) Error() string {
	return errtext.After(fmt.Sprintf("window: rank %d could not make its part of the window: ", e.Rank), e.Cause)
}

// Unwrap gives the cause.
func (e *CreateError) Unwrap() error { return e.Cause }
