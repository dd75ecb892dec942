package window

import (
	"errors"
	"fmt"

	"github.com/onesided/rma/epoch"
	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/world"
)

// Errors are compared by errors.Is. Their texts have details.
var (
	// ErrArgument means that an argument is never valid, such as a negative displacement, a nil result, or layouts that
	// do not fit. It is world.ErrArgument.
	ErrArgument = world.ErrArgument
	// ErrRank means that the job has no such rank.
	ErrRank = errors.New("no such rank")
	// ErrRange means that an operation would leave the target's part of the window.
	ErrRange = errors.New("out of the target's window")
	// ErrOverlap means that a layout writes an element twice.
	ErrOverlap = errors.New("overlapping layout")
	// ErrPromise means that a call breaks a promise that an option gave when the window was made.
	ErrPromise = errors.New("promise given at creation broken")
	// ErrAlignment means that a window cannot be viewed as another element type.
	ErrAlignment = errors.New("window does not fit the element type")
	// errDescription means that a rank has described an impossible part.
	errDescription = errors.New("impossible part of a window")
	// ErrAttached means that a window which was attached to does not have the call: see [Attach].
	ErrAttached = errors.New("a window that was attached to has only locks, and operations on rank 0 under them")
	// ErrServed means that a window is served to clients and cannot be closed.
	ErrServed = errors.New("the window is served: end Serve first")
	// ErrReadOnly means that a client may only read the window: the call would write to it or lock it exclusively.
	ErrReadOnly = errors.New("the window is served read-only: clients have Get, NoOp and shared locks")
	// ErrNotServed means that no window is served under the name, or that its elements are of another type.
	ErrNotServed = errors.New("no such window")
	// ErrDeparted is the cause of a *world.PeerError about a rank that has closed the window after a failure or a
	// mismatch. It is a world.ErrLeft.
	ErrDeparted error = parted{}
	// ErrNoSeat means that all seats of the window (option [Seats]) are taken, or that the session has its share of
	// them ([Limits].SeatsPerSession).
	ErrNoSeat = errors.New("all seats are taken")
	// ErrMismatch means that ranks disagree on a collective call or its arguments. It is world.ErrMismatch.
	ErrMismatch = world.ErrMismatch
)

// Errors of calls that do not fit the epochs that are open. They are those of package epoch. A call that returns
// one has changed nothing, except Close with ErrNotPosted, after which the window is closed.
var (
	// ErrNoEpoch means that an operation has no access epoch to its target.
	ErrNoEpoch = epoch.ErrNoEpoch
	// ErrEpochOpen means that the call would nest or mix epochs, or close a window with an open epoch.
	ErrEpochOpen = epoch.ErrEpochOpen
	// ErrBusy means that the epoch is being opened or closed: by another goroutine, or by an Unlock, UnlockAll or Post
	// that was interrupted. It is not world.ErrBusy, which Allocate and Create return.
	ErrBusy = epoch.ErrBusy
	// ErrNotStarted means that Complete has no Start.
	ErrNotStarted = epoch.ErrNotStarted
	// ErrNotPosted means that Wait or Test has no Post. Close also returns it if a target of this rank's last
	// Start has closed the window and never called Post.
	ErrNotPosted = epoch.ErrNotPosted
	// ErrNotLocked means that Unlock or a flush has no Lock, or UnlockAll no LockAll.
	ErrNotLocked = epoch.ErrNotLocked
	// ErrClosed means that the window is closed, also by Close of its World. It is not world.ErrClosed, which Allocate
	// and Create return for a closed World.
	ErrClosed = epoch.ErrClosed
	// ErrGroup means that a group has a rank that does not exist or is named twice.
	ErrGroup = epoch.ErrGroup
	// ErrAssert means that assertions do not exist, or that the call does not take them, or that they differ from those of
	// the Fence that is continued.
	ErrAssert = epoch.ErrAssert
	// ErrLockKind means that a lock is neither Shared nor Exclusive.
	ErrLockKind = epoch.ErrLockKind
)

type parted struct{}

func (parted) Error() string        { return "has closed the window after a failure or a mismatch" }
func (parted) Is(target error) bool { return target == world.ErrLeft }

// An OpError reports an operation that was not done. If the call was wrong, no data has moved. If the target has
// failed, part of the data may have moved.
type OpError struct {
	// Op is the name of the method.
	Op string
	// Target, Displacement and Count are those of the operation. Displacement and Count are in elements.
	Target, Displacement, Count int
	// Cause wraps one of this package's errors, an error of package epoch or reduce, a *world.PeerError or a
	// *verbs.CapabilityError.
	Cause error
}

func (e *OpError) Error() string {
	head := fmt.Sprintf("window: %s of %s at displacement %d of rank %d: ", e.Op, errtext.Count(e.Count, "element"), e.Displacement, e.Target)
	var illegal *epoch.CallError
	if errors.As(e.Cause, &illegal) {
		// head has the operation already.
		return head + illegal.Reason()
	}
	return errtext.After(head, e.Cause)
}

// Unwrap returns the cause.
func (e *OpError) Unwrap() error { return e.Cause }

// A MismatchError reports that ranks made different collective calls, or passed different arguments to one. Every rank
// gets it. It is an [ErrMismatch].
type MismatchError struct {
	// Call is the collective call of this rank. What is the argument on which ranks disagree, or "" if they disagree on
	// the call. Rank passed Value, and WantRank passed Want.
	Call, What     string
	Rank, WantRank int
	Value, Want    any
	// Place and WantPlace are the source positions of the calls of Rank and WantRank, if both ranks look for misuse (see
	// world.WithDebug) and could tell each other. Otherwise they are "".
	Place, WantPlace string
	// Number is the position of the call among the Fences and the Close of the window, from 1. It is 0 for Allocate and
	// Create.
	Number uint32
}

func (e *MismatchError) Error() string {
	where, verb, made := "", "called", "called"
	if e.Number != 0 {
		where = fmt.Sprintf("number %d of the Fences and the Close of the window, which all ranks must call in the same order: ", e.Number)
	}
	if e.What != "" {
		verb, made = "passed", "passed "+e.What
	}
	return fmt.Sprintf("window: %s: %v: %srank %d %s %v%s, rank %d %s %v%s", e.Call, ErrMismatch, where,
		e.Rank, made, e.Value, placed(e.Place), e.WantRank, verb, e.Want, placed(e.WantPlace))
}

// placed returns a place as it continues a sentence.
func placed(place string) string {
	if place == "" {
		return ""
	}
	return " at " + place
}

// Is reports whether target is [ErrMismatch].
func (e *MismatchError) Is(target error) bool { return target == ErrMismatch }

// A CreateError reports that a rank could not make its part of a window. Every rank gets it. On Rank itself Cause is
// the error. On the other ranks Cause has the text of the error, at most 320 bytes.
type CreateError struct {
	Rank  int
	Cause error
}

func (e *CreateError) Error() string {
	return errtext.After(fmt.Sprintf("window: rank %d could not make its part of the window: ", e.Rank), e.Cause)
}

// Unwrap returns the cause.
func (e *CreateError) Unwrap() error { return e.Cause }
