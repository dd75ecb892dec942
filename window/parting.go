package window

import (
	"context"
	"time"

	"github.com/onesided/rma/internal/job"
)

// A rank that closes a window because another has failed takes part in no more epochs of it. Ranks that have not heard of the
// failure may still wait for this one. It sets a mark in its word in the memory of each rank that it maps or has a link with. A rank
// that needs it later finds no mark, but finds that it has left the World.

// closedMark is set in the word of ranks that wait for a lock, where the rank has closed the window.
const closedMark = 1 << 31

// partingPatience is how long this rank waits for processes that it has never met: a process that is stopped does not answer.
const partingPatience = 100 * time.Millisecond

// tellParting tells the other ranks that this one has closed the window, but for those that it cannot reach.
func (c *core) tellParting() {
	ctx, cancel := context.WithTimeout(context.Background(), partingPatience)
	defer cancel()
	var strangers []int
	for rank := range c.size {
		if rank == c.rank || c.world.Gone(rank) {
			continue
		}
		if !c.world.Mapped(rank) {
			if l := c.world.Linked(rank); l != nil {
				_ = l.TellWithin(ctx, &job.Message{Kind: messageWord, Service: c.number, A: waitingAt, X: closedMark}, nil)
				l.Post()
			}
			continue
		}
		if !c.world.Acquainted(rank) {
			// All are asked before the first is waited for.
			strangers = append(strangers, rank)
			continue
		}
		c.markParting(rank)
	}
	for _, rank := range strangers {
		if c.world.Approach(ctx, "window.Close", rank) == nil {
			c.markParting(rank)
		}
	}
}

// markParting tells a rank that this one maps.
func (c *core) markParting(rank int) {
	if p, err := c.peer(rank); err == nil {
		c.world.RaceRelease()
		p.control.pair(c.rank, waitingAt).Or(closedMark)
		p.neighbor.Wake()
	}
}

// parted reports whether a rank has told this one that it has closed the window.
func (c *core) parted(rank int) bool {
	return c.own.control.pair(rank, waitingAt).Load()&closedMark != 0
}

// waits reports whether a rank waits until the exclusive word of this one is free.
func (c *core) waits(rank int) bool {
	return c.own.control.pair(rank, waitingAt).Load()&^closedMark != 0
}

// waitedFor reports whether a living rank waits until the exclusive word of this one is free. A rank that dies while it waits
// leaves its words as they are.
func (c *core) waitedFor() bool {
	if c.own.control.waiters().Load() == 0 {
		return false
	}
	for rank := range c.size {
		if c.waits(rank) && !c.gone(rank) {
			return true
		}
	}
	return false
}

// lost returns the error of a wait for a rank from which nothing can come any more: see job.Waiter.Lost.
func (c *core) lost(call string, rank int, wait *job.Waiter) error {
	return c.orParted(wait.Lost(call, rank), call, rank, wait)
}

// unserved returns the error of a wait for a rank that will not answer any more: see job.Waiter.Unserved.
func (c *core) unserved(call string, rank int, wait *job.Waiter) error {
	return c.orParted(wait.Unserved(call, rank), call, rank, wait)
}

func (c *core) orParted(err error, call string, rank int, wait *job.Waiter) error {
	if err == nil && wait.AboutToSleep() && c.parted(rank) {
		err = &job.PeerError{Rank: rank, Op: call, Cause: ErrDeparted}
	}
	return err
}
