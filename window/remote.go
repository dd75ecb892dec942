package window

import (
	"context"
	"errors"
	"fmt"

	"github.com/onesided/rma/world"
)

// eachLink calls do for the ranks of the window that this one has reached over links, and
// for which include holds, and joins the errors.
func (c *core) eachLink(include func(rank int) bool, do func(rank int, p *peer) error) error {
	var errs []error
	for rank := range c.peers {
		if p := c.peers[rank].Load(); p != nil && p.link != nil && include(rank) {
			if err := do(rank, p); err != nil {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

func everyone(int) bool { return true }

// flushRemote completes the operations on ranks that are reached over links.
func (c *core) flushRemote(ctx context.Context, call string, include func(rank int) bool) error {
	err := c.eachLink(include, func(rank int, p *peer) error {
		err := p.deferred.start(ctx, false)
		p.link.Push()
		return c.blame(call, rank, err)
	})
	return errors.Join(err, c.eachLink(include, func(rank int, p *peer) error { return c.blame(call, rank, p.deferred.flush(ctx)) }))
}

// settleRemote has the buffers of the operations on ranks that are reached over links
// back.
func (c *core) settleRemote(ctx context.Context, call string, include func(rank int) bool) error {
	return c.eachLink(include, func(rank int, p *peer) error {
		return c.blame(call, rank, p.deferred.settle(ctx))
	})
}

// blame says which call an error of a link is of.
func (c *core) blame(call string, rank int, err error) error {
	if err == nil {
		return nil
	}
	var failed *world.PeerError
	if errors.As(err, &failed) {
		return &world.PeerError{Rank: rank, Op: call, Cause: failed.Cause}
	}
	return fmt.Errorf("%s: %w", call, err)
}

// askLock asks a rank that is told by messages for a lock.
func (c *core) askLock(ctx context.Context, p *peer, kind LockKind, target int) error {
	err := p.link.TellWithin(ctx, &world.Message{Kind: messageLock, Service: c.number, A: uint8(kind), X: c.ticket(target), Y: uint64(c.tallies.passed.Load())}, nil)
	p.link.Post()
	return err
}

// awaitLock waits until the lock that was asked for has been granted. If it fails the
// wish is taken back.
func (c *core) awaitLock(ctx context.Context, call string, p *peer, kind LockKind, target int) error {
	err := c.awaitTicket(ctx, call, target)
	if err != nil {
		c.tellUnlock(p, kind, target)
	}
	return err
}

// awaitTicket waits until the lock that was asked for last has been granted.
func (c *core) awaitTicket(ctx context.Context, call string, target int) error {
	ticket := c.tickets[target].Load()
	granted := &c.granted[target]
	if reached(granted, ticket) {
		return nil
	}
	if err := c.beginReading(call); err != nil {
		return err
	}
	defer c.endReading()
	wait := c.world.NewWaiter()
	defer wait.Finish()
	for !reached(granted, ticket) {
		err := wait.Lost(call, target)
		if err == nil {
			err = c.pause(ctx, call, &wait)
		}
		if err != nil && !reached(granted, ticket) {
			return err
		}
	}
	return nil
}

// tellUnlock gives back a lock of a rank that is told by messages.
func (c *core) tellUnlock(p *peer, kind LockKind, target int) {
	ticket := c.tickets[target].Load()
	// An error is the failure of target, and known as such.
	_ = p.deferred.start(context.Background(), true)
	_ = p.link.Tell(&world.Message{Kind: messageUnlock, Service: c.number, A: uint8(kind), X: uint64(ticket), AfterReads: true}, nil)
	p.link.Post()
}
