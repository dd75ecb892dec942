package world

import "github.com/onesided/rma/internal/job"

// Errors are compared by errors.Is, and have details in their texts.
var (
	// ErrArgument means that an argument is not allowed.
	ErrArgument = job.ErrArgument
	// ErrMismatch means that ranks disagree on a collective call or its arguments.
	ErrMismatch = job.ErrMismatch
	// ErrBusy means that another goroutine of this rank is in a collective. It is not window.ErrBusy, which concerns an epoch.
	ErrBusy = job.ErrBusy
	// ErrUnfinished means that a collective whose context ended must be called again before another one.
	ErrUnfinished = job.ErrUnfinished
	// ErrClosed means that this World is closed. It is not window.ErrClosed, which calls of a closed window return.
	ErrClosed = job.ErrClosed
	// ErrLeft means that a rank left while others needed a call of it. It closed its World, returned from its body without
	// an error, or called [World.Shrink] in place of that call.
	ErrLeft = job.ErrLeft
	// ErrExcluded means that the other ranks counted this rank as failed and continue without it.
	ErrExcluded = job.ErrExcluded
	// ErrInitialized means that Init was called while the World of an earlier Init was open, or in a rank of Run, Main or Simulate.
	ErrInitialized = job.ErrInitialized
	// ErrEnvironment means that environment variables, or the options in their place (WithDevice, WithAddress, WithTrace), are
	// contradictory, incomplete or wrong.
	ErrEnvironment = job.ErrEnvironment
	// ErrDeadlock means that in virtual time all ranks have waited for the time of [WithStartTimeout]. The error names
	// the call that each rank is in and the rank that it waits for, of at most 32 ranks.
	ErrDeadlock = job.ErrDeadlock
	// ErrNoCollectives means that a collective was called on the World of a session.
	ErrNoCollectives = job.ErrNoCollectives
	// ErrEvicted means that the server has evicted this client; the error says why.
	ErrEvicted = job.ErrEvicted
)

// A PeerError means that a call needed a rank that has failed, or has left. It has these fields:
//
//	Rank  int    // that rank
//	Op    string // the call, "" if none
//	Cause error  // why the rank failed, or an ErrLeft
//
// It unwraps to Cause.
type PeerError = job.PeerError

// A RankError means that a rank of Run, Main or Simulate failed. It has these fields:
//
//	Rank  int
//	Cause error // the error or panic of the body, or the error of Close
//
// It unwraps to Cause.
type RankError = job.RankError

// A RejectionError means that a rank rejected a message of this one. It has these fields:
//
//	Rank int    // the rank that rejected it
//	Text string // its reason
type RejectionError = job.RejectionError
