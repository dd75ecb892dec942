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
	// ErrClosed: this World, or this Listener, is closed.
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

// A PeerError says that a call needed a rank that has failed, or left.
type PeerError struct {
	// Rank is that one.
	Rank int
	// Op is the call, empty if none is meant.
	Op string
	// Cause is why it failed, or ErrLeft, or an error that is one and says what the rank has done.
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

// Unwrap gives the cause.
func (e *PeerError) Unwrap() error { return e.Cause }

// A RankError is how a rank of Run ended.
type RankError struct {
	Rank  int
	Cause error
}

func (e *RankError) Error() string {
	return errtext.After(fmt.Sprintf("world: rank %d: ", e.Rank), e.Cause)
}

// Unwrap gives the error that the body returned.
func (e *RankError) Unwrap() error { return e.Cause }

// A RejectionError says that a rank refused what this one asked of it by a message.
type RejectionError struct {
	Rank int
	// Text is the rank's reason.
	Text string
}

func (e *RejectionError) Error() string {
	return fmt.Sprintf("world: refused by rank %d: %s", e.Rank, e.Text)
}
