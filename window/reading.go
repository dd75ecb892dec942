package window

import (
	"context"
	"fmt"

	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/scheduler"
)

// Some calls look at control blocks while no epoch keeps the window from being closed. These are the calls for
// notifications, and all calls that wait when the World is closed under them. A body does that if it returns while
// other goroutines of its rank continue. beginReading begins such a look, endReading ends it, and pause is a pause
// within.
//
// Closing stores closed before it loads readers. A reader increments readers before it loads closed. So either the
// reader sees that the window is closed, or closing waits for it before the memory is freed. A Fence or a Close
// increments readers under the mutex of epochs. When the World is closed, the epochs are abandoned under the same mutex
// before readers is loaded. So a Fence or Close is either rejected or waited for.
//
// beginReading first applies held accumulates and sends deferred operations, because another rank may wait for them
// before it does what this one waits for. Sending may wait for room, until ctx ends.
func (c *core) beginReading(ctx context.Context, call string) error {
	c.settle()
	if c.remote {
		_ = c.eachLink(everyone, func(_ int, p *peer) error {
			_, err := p.deferred.begin(ctx, scheduler.Nothing)
			p.link.Post()
			return err
		})
	}
	c.readers.Add(1)
	if c.closed.Load() {
		c.endReading()
		return errtext.Errorf("%s: %w", errtext.Call("window", call), ErrClosed)
	}
	return nil
}

// noWait is the context of calls that do not block. It has ended.
var noWait = func() context.Context {
	ctx, end := context.WithCancel(context.Background())
	end()
	return ctx
}()

func (c *core) endReading() {
	if c.readers.Add(-1) == 0 && c.closed.Load() {
		c.world.Ring(c.rank)
	}
}

func (c *core) pause(ctx context.Context, call string, wait *job.Waiter) error {
	err := wait.Pause(ctx)
	if err == nil && c.closed.Load() {
		err = ErrClosed
	}
	if err != nil {
		return errtext.Errorf("%s: %w", errtext.Call("window", call), closedMeanwhile(err))
	}
	return nil
}

// awaited adds what a call has waited for to the error of a call whose context has ended.
func awaited(ctx context.Context, err error, format string, arguments ...any) error {
	if ctx.Err() == nil {
		return err
	}
	return fmt.Errorf("%w: %s", err, fmt.Sprintf(format, arguments...))
}

// awaitReaders returns when all readers have noticed that the window is closed.
func (c *core) awaitReaders() {
	c.world.Ring(c.rank)
	wait := c.world.NewClosingWaiter()
	defer wait.Finish()
	wait.For(c.rank)
	for c.readers.Load() != 0 {
		_ = wait.Pause(context.Background())
	}
}
