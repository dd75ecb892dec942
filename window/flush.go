package window

import (
	"context"
	"fmt"
)

// Flush returns when every operation of this rank on target is complete there, for
// everyone to see. It needs a lock on target.
func (c *core) Flush(_ context.Context, target int) error {
	if uint(target) < uint(c.size) && c.epochs.Passive(target) && c.world.Failures() == 0 {
		c.settle()
		publish()
		return nil
	}
	return c.flushed("Flush", target)
}

// FlushAll is Flush of every rank that is locked.
func (c *core) FlushAll(context.Context) error { return c.flushedAll("FlushAll") }

// FlushLocal returns when the buffers of the operations on target are the
// program's again and their results are valid. It needs a lock on target.
func (c *core) FlushLocal(_ context.Context, target int) error {
	if uint(target) < uint(c.size) && c.epochs.Passive(target) && c.world.Failures() == 0 {
		return nil
	}
	return c.flushed("FlushLocal", target)
}

// FlushLocalAll is FlushLocal of every rank that is locked.
func (c *core) FlushLocalAll(context.Context) error { return c.flushedAll("FlushLocalAll") }

// flushed is the way of a flush that did not pass the short check.
func (c *core) flushed(call string, target int) error {
	if err := c.checkRank(call, target); err != nil {
		return err
	}
	c.mu.Lock()
	err := c.epochs.CheckFlush(call, target)
	c.mu.Unlock()
	if err != nil {
		return fmt.Errorf("window: %w", err)
	}
	c.settle()
	publish()
	return c.targetFailure(call, target)
}

func (c *core) flushedAll(call string) error {
	c.mu.Lock()
	err := c.epochs.CheckFlushAll(call)
	c.mu.Unlock()
	if err != nil {
		return fmt.Errorf("window: %w", err)
	}
	c.settle()
	publish()
	if c.world.Failures() == 0 {
		return nil
	}
	for target := range c.size {
		if c.epochs.Passive(target) {
			if err := c.targetFailure(call, target); err != nil {
				return err
			}
		}
	}
	return nil
}

// Sync makes this rank's own loads and stores of its part and the operations of
// all ranks one order: what this rank stored is seen by operations after it, and
// its loads see operations that are complete.
func (c *core) Sync() error {
	if c.closed.Load() {
		return fmt.Errorf("window: Sync: %w", errClosed)
	}
	publish()
	return nil
}

func (c *core) checkRank(call string, rank int) error {
	if uint(rank) >= uint(c.size) {
		return fmt.Errorf("window: %s: %w: %d, allowed are 0 to %d", call, ErrRank, rank, c.size-1)
	}
	return nil
}
