package window

import (
	"context"
	"fmt"

	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/scheduler"
)

// Some calls look at control blocks while no epoch keeps the window from being closed:
// those for notifications, and all that wait when the World is closed under them, by a
// body that returns while other goroutines of its rank go on. beginReading begins such
// a look, endReading ends it, and pause is a pause within.
//
// Closing stores closed before it looks at readers, a reader counts itself before it
// looks at closed: so either the reader sees that the window is closed, or the closing
// waits for it before the memory goes. A Fence or a Close counts itself under the mutex of epochs. The closing of the World
// abandons the epochs under the same mutex before it looks at readers: so a Fence or Close is either refused or waited for.
//
// What is held back is applied first, and what was collected for a link sent: a rank may
// wait for one that waits for it. To send may be to wait for room, while ctx lasts.
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

// noWait is the context of calls that do not block: it has ended.
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

// awaited says in the error of a call that its context has cut short what it waited for.
func awaited(ctx context.Context, err error, format string, arguments ...any) error {
	if ctx.Err() == nil {
		return err
	}
	return fmt.Errorf("%w: %s", err, fmt.Sprintf(format, arguments...))
}

// awaitReaders returns when those that read have noticed that the window is closed.
func (c *core) awaitReaders() {
	c.world.Ring(c.rank)
	wait := c.world.NewWaiter()
	defer wait.Finish()
	wait.For(c.rank)
	wait.Closing()
	for c.readers.Load() != 0 {
		_ = wait.Pause(context.Background())
	}
}
