package window

import (
	"context"
	"errors"
	"fmt"

	"github.com/onesided/rma/epoch"
	"github.com/onesided/rma/internal/job"
)

// An Assert is a promise to a synchronization call that makes it cheaper. A call takes any number of them.
type Assert = epoch.Assert

// The assertions.
const (
	// NoPrecede: no operations in the epoch that Fence closes.
	NoPrecede = epoch.NoPrecede
	// NoSucceed: Fence opens no epoch.
	NoSucceed = epoch.NoSucceed
	// NoPut: nobody puts or accumulates to this rank in the next epoch.
	NoPut = epoch.NoPut
	// NoStore: this rank has not stored to its part since the last epoch.
	NoStore = epoch.NoStore
	// NoCheck: no rank has an exclusive lock on the window, or asks for one, before the epoch
	// that LockAll opens has ended. It is of LockAll only, the others are of Fence only.
	NoCheck = epoch.NoCheck
)

// together are all promises of a call.
func together(asserts []Assert) (all Assert) {
	for _, a := range asserts {
		all |= a
	}
	return all
}

// checkContext refuses a call that may block without a context.
func checkContext(ctx context.Context, call string) error {
	if ctx == nil {
		return fmt.Errorf("window: %s: %w: nil context", call, ErrArgument)
	}
	return nil
}

// peerError is the error of a call that needs a rank which has failed.
func (c *core) peerError(call string, rank int) error {
	err := c.world.Failure(rank)
	var failed *job.PeerError
	if errors.As(err, &failed) {
		return &job.PeerError{Rank: rank, Op: call, Cause: failed.Cause}
	}
	return err
}

// anyFailure is the error of a call that needs every rank, after one has failed.
func (c *core) anyFailure(call string) error {
	rank, _ := c.world.FirstFailure()
	return c.peerError(call, rank)
}
