package job

import (
	"errors"
	"fmt"

	"github.com/onesided/rma/internal/errtext"
)

var (
	// ErrLeft: the rank closed its World while others needed a call of it, or ended before they had closed theirs; or it lives, and
	// has called [World.Shrink] in the place of that call.
	ErrLeft = errors.New("the rank has left the job, or the team")
	// ErrClosed: this World is closed. Accept of a closed Listener returns it, too.
	ErrClosed = errors.New("closed")
	// ErrInitialized: Init was called while the World that it had returned was open, or in a rank of Run, Main or Simulate.
	ErrInitialized = errors.New("already initialized")
	// ErrArgument: an argument that is not allowed.
	ErrArgument = errors.New("invalid argument")
	// ErrMismatch: ranks disagree on a collective call or its arguments.
	ErrMismatch = errors.New("ranks disagree")
	// ErrBusy: another goroutine of this rank is in a collective.
	ErrBusy = errors.New("another collective is in progress")
	// ErrUnfinished: a collective that its context cut short has to be called
	// again before another.
	ErrUnfinished = errors.New("a collective is unfinished")
	// ErrEnvironment: the environment that a launcher gave makes no sense.
	ErrEnvironment = errors.New("invalid environment")
)

var errWorldClosed = fmt.Errorf("the World is %w", ErrClosed)

// nilArgument is the error of a call that has nil for an argument that it needs.
func nilArgument(call, what string) error {
	return fmt.Errorf("world: %s: %w: nil %s", call, ErrArgument, what)
}

// A PeerError means that a call needed a rank that has failed, or has left. It unwraps to Cause.
type PeerError struct {
	// Rank is that rank.
	Rank int
	// Op is the call, such as "Barrier" or "window.Fence", or "" if none.
	Op string
	// Cause is why the rank failed, or an ErrLeft.
	Cause error
}

func (e *PeerError) Error() string {
	text := "world"
	if e.Op != "" {
		text = errtext.Call(text, e.Op)
	}
	text += fmt.Sprintf(": rank %d", e.Rank)
	switch {
	case e.Cause == ErrLeft:
		return text + " has left the job, or the team"
	case errors.Is(e.Cause, ErrLeft):
		return errtext.After(text+" ", e.Cause)
	}
	return errtext.After(text+" has failed: ", e.Cause)
}

// Unwrap returns the cause.
func (e *PeerError) Unwrap() error { return e.Cause }

// A RankError means that a rank of Run, Main or Simulate failed. It unwraps to Cause.
type RankError struct {
	// Rank is that rank.
	Rank int
	// Cause is the error or panic of the body, or the error of Close.
	Cause error
}

func (e *RankError) Error() string {
	return errtext.After(fmt.Sprintf("world: rank %d: ", e.Rank), e.Cause)
}

// Unwrap returns the cause.
func (e *RankError) Unwrap() error { return e.Cause }

// A RejectionError means that a rank rejected a message of this one.
type RejectionError struct {
	// Rank is the rank that rejected it.
	Rank int
	// Text is its reason.
	Text string
}

func (e *RejectionError) Error() string {
	return fmt.Sprintf("world: rank %d rejected a message: %s", e.Rank, e.Text)
}
