package window

import (
	"context"
	"errors"
	"fmt"

	"github.com/onesided/rma/epoch"
	"github.com/onesided/rma/internal/job"
)

// An Assert is an assertion passed to a synchronization call, as in MPI. NoSucceed changes what Fence does. The others
// are statements about the program, which the library does not check. A call takes any number of assertions.
type Assert = epoch.Assert

// The assertions. LockAll takes NoCheck, and Fence the others.
const (
	// NoPrecede asserts that the epoch which Fence closes has no operations. Fence then takes less time.
	NoPrecede = epoch.NoPrecede
	// NoSucceed makes Fence open no epoch.
	NoSucceed = epoch.NoSucceed
	// NoPut asserts that no rank puts or accumulates to this rank in the next epoch of Fence. It has no effect.
	NoPut = epoch.NoPut
	// NoStore asserts that this rank has not stored to its part since its last Fence. It has no effect.
	NoStore = epoch.NoStore
	// NoCheck asserts that no rank holds or requests an exclusive lock of the window before the epoch of LockAll ends.
	// LockAll then acquires no lock.
	NoCheck = epoch.NoCheck
)

// together returns the union of the assertions of a call.
func together(asserts []Assert) (all Assert) {
	for _, a := range asserts {
		all |= a
	}
	return all
}

// checkContext rejects a nil context.
func checkContext(ctx context.Context, call string) error {
	if ctx == nil {
		return fmt.Errorf("window: %s: %w: nil context", call, ErrArgument)
	}
	return nil
}

// check rejects a call of a nil Window, or of the zero Window, and a nil context.
func (c *core) check(ctx context.Context, call string) error {
	if c == nil {
		return unmade(call)
	}
	return checkContext(ctx, call)
}

// unmade returns the error of a call of a nil Window, or of the zero Window.
func unmade(call string) error {
	return fmt.Errorf("window: %s: %w: nil Window, or one that no call of package window has made", call, ErrArgument)
}

// peerError returns the error of a call that needs a rank which has failed.
func (c *core) peerError(call string, rank int) error {
	err := c.world.Failure(rank)
	var failed *job.PeerError
	if errors.As(err, &failed) {
		return &job.PeerError{Rank: rank, Op: call, Cause: failed.Cause}
	}
	return err
}

// anyFailure returns the error of a call that needs every rank, after one has failed.
func (c *core) anyFailure(call string) error {
	rank, _ := c.world.FirstFailure()
	return c.peerError(call, rank)
}
