package window

import (
	"context"
	"errors"
	"fmt"

	"github.com/onesided/rma/world"
)

// Fence returns when every rank has called it. It closes an epoch: the operations
// of every rank are complete at their targets; and opens the next, unless NoSucceed
// is asserted. All ranks assert NoPrecede and NoSucceed, or none does.
func (c *core) Fence(ctx context.Context, asserts ...Assert) error {
	var assert Assert
	for _, a := range asserts {
		assert |= a
	}
	c.mu.Lock()
	number, err := c.epochs.BeginFence(assert)
	c.mu.Unlock()
	if err != nil {
		return fmt.Errorf("window: %w", err)
	}
	c.settle()
	if c.remote && assert&NoPrecede == 0 {
		err = c.flushRemote(ctx, "window.Fence", everyone)
	}
	if err == nil {
		err = c.meeting.Meet(ctx, "window.Fence", number)
	}
	c.mu.Lock()
	if err == nil {
		c.epochs.EndFence(assert)
	} else if failed := (*world.PeerError)(nil); errors.As(err, &failed) {
		c.epochs.FailFence()
	} else {
		c.epochs.SuspendFence()
	}
	c.mu.Unlock()
	return err
}

// Close frees the window. It is collective: it returns when every rank that has not
// failed has called it. With an epoch open it is an error and changes nothing.
// Memory of a window that Close could not agree on, because a rank has failed,
// stays until the World is closed.
func (c *core) Close() error {
	c.mu.Lock()
	err := c.epochs.Close()
	c.mu.Unlock()
	if err != nil {
		return fmt.Errorf("window: %w", err)
	}
	c.closed.Store(true)
	c.stopListening()
	for rank := range c.size {
		c.forget(rank)
	}
	if err := c.meeting.Meet(context.Background(), "window.Close", c.epochs.LastFence()+1); err != nil {
		var failed *world.PeerError
		if errors.As(err, &failed) {
			return nil
		}
		return err
	}
	c.withdraw()
	return c.release()
}
