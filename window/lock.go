package window

import (
	"context"
	"fmt"

	"github.com/onesided/rma/internal/job"
)

// The lock of a target is a word for the exclusive holder and one word an origin
// for shared holders, all in the target's control block:
//
//   - a shared locker stores 1 in its own word, then looks at the exclusive word;
//     if that is taken it stores 0 again and waits;
//   - an exclusive locker takes the exclusive word by compare-and-swap, then waits
//     until every shared word is 0.
//
// Each does its sequentially consistent store before its load, so of two that
// conflict at least one sees the other. Who has the exclusive word keeps it while
// it waits, so new shared lockers stay out and it is not starved. A shared lock
// touches no word that another holder writes. And every word names its holder:
// whoever waits for a rank that has failed or left gives that rank's words back.
//
// Who comes next, one that maps the lock or one that asks for it, turn.go decides.
//
// Sleepers announce themselves in the waiters count and their own waiting word
// before they look for the last time; an exclusive unlock looks at the count after
// it has given the word back. A shared unlock looks at the exclusive word after it
// has given its own back, and wakes that rank.

func (c *core) lockShared(ctx context.Context, call string, target int, p *peer) error {
	if c.tryShared(p) {
		return nil
	}
	if err := c.beginReading(ctx, call); err != nil {
		return err
	}
	defer c.endReading()
	for {
		if err := c.awaitUnlocked(ctx, call, Shared, target, p); err != nil {
			return err
		}
		if c.tryShared(p) {
			return nil
		}
	}
}

// tryShared takes a shared lock if nobody has the exclusive one.
func (c *core) tryShared(p *peer) bool {
	mine := p.control.pair(c.rank, sharedAt)
	exclusive := p.control.exclusive()
	mine.Store(1)
	if exclusive.Load() == 0 {
		return true
	}
	mine.Store(0)
	// Another may have taken the word meanwhile, and wait for this one.
	c.ringHolder(exclusive.Load())
	return false
}

func (c *core) unlockShared(p *peer) { c.giveBackShared(p, c.rank) }

// giveBackShared gives back the shared lock of a rank.
func (c *core) giveBackShared(p *peer, origin int) {
	p.control.pair(origin, sharedAt).Store(0)
	if holder := p.control.exclusive().Load(); holder != 0 {
		c.ringHolder(holder)
	}
}

func (c *core) lockExclusive(ctx context.Context, call string, target int, p *peer) error {
	exclusive := p.control.exclusive()
	if !p.control.agentsFirst() && exclusive.CompareAndSwap(0, c.lockWord) && c.nobodyShares(p) {
		return nil
	}
	if err := c.beginReading(ctx, call); err != nil {
		return err
	}
	defer c.endReading()
	for exclusive.Load() != c.lockWord {
		if err := c.awaitUnlocked(ctx, call, Exclusive, target, p); err != nil {
			return err
		}
		exclusive.CompareAndSwap(0, c.lockWord)
	}
	for origin := range c.holders() {
		if err := c.awaitShared(ctx, call, target, origin, p); err != nil {
			c.unlockExclusive(target, p)
			return err
		}
	}
	return nil
}

func (c *core) nobodyShares(p *peer) bool {
	for origin := range c.holders() {
		if p.control.pair(origin, sharedAt).Load() != 0 {
			return false
		}
	}
	return true
}

// unlockExclusive gives back the exclusive word, but not if others took this rank for
// dead and one of them has it now.
func (c *core) unlockExclusive(target int, p *peer) {
	left := p.control.leaveToAgents()
	p.control.exclusive().CompareAndSwap(c.lockWord, 0)
	c.ringWaiters(p)
	if left {
		c.world.Ring(target)
	}
}

// ringWaiters wakes those that wait for the exclusive word.
func (c *core) ringWaiters(p *peer) {
	if p.control.waiters().Load() == 0 {
		return
	}
	for origin := range c.size {
		if p.control.pair(origin, waitingAt).Load()&^closedMark != 0 {
			c.world.Ring(origin)
		}
	}
}

// awaitUnlocked waits until nobody has the exclusive word, breaking the lock of a
// holder that has died where it may. To have it itself it waits until it is its turn.
func (c *core) awaitUnlocked(ctx context.Context, call string, kind LockKind, target int, p *peer) error {
	exclusive := p.control.exclusive()
	wait := c.world.NewWaiter()
	defer wait.Finish()
	p.control.waiters().Add(1)
	defer p.control.waiters().Add(^uint32(0))
	waiting := p.control.pair(c.rank, waitingAt)
	waiting.Add(1)
	defer waiting.Add(^uint32(0))
	var way giveWay
	for {
		holder := exclusive.Load()
		if holder != 0 {
			way.taken(p)
		} else if kind == Shared || !way.first(c, target, p) {
			return nil
		}
		c.waitFor(&wait, holderOf(holder), target)
		if way.since != 0 {
			// Nobody tells when it has waited long enough.
			wait.Brief()
		}
		if err := wait.Unserved(call, target); err != nil {
			return err
		}
		// Somebody may go on to write such words, until ctx ends.
		if rank := holderOf(holder); holder != 0 && ctx.Err() == nil && (rank >= c.holders() || c.lostHolder(rank, &wait)) {
			exclusive.CompareAndSwap(holder, 0)
			continue
		}
		if err := c.pause(ctx, call, &wait); err != nil {
			if holder == 0 {
				return awaited(ctx, err, "the lock of rank %d is about to be granted to another", target)
			}
			return awaited(ctx, err, "%s has the lock of rank %d", c.holderName(holderOf(holder)), target)
		}
	}
}

// waitFor has a wait be for the holder of a lock, or, where that is a client or about to change, for the target.
func (c *core) waitFor(wait *job.Waiter, holder, target int) {
	if holder < 0 || holder >= c.size {
		holder = target
	}
	wait.For(holder)
}

const (
	lockFactor  uint32 = 0x9e37_79b1
	lockInverse uint32 = 0x0e8b_2f51
)

// lockWordOf is the word of an exclusive lock or a stripe that a holder has: 0 is nobody's. The words of holders
// are far apart: one that is damaged, by a bit say, names nobody, and is broken as that of a dead holder is.
func lockWordOf(holder int) uint32 { return uint32(holder+1) * lockFactor }

// holderOf is the holder that a lock word names, -1 for that of nobody. One that names no holder gives
// a number that is larger than those of all.
func holderOf(word uint32) int { return int(word*lockInverse) - 1 }

// holderName is who has a lock.
func (c *core) holderName(holder int) string {
	switch {
	case holder >= c.holders():
		return "a damaged word"
	case holder >= c.size:
		return "a client"
	}
	return fmt.Sprintf("rank %d", holder)
}

// awaitShared waits until origin has no shared lock, breaking that of a dead one.
func (c *core) awaitShared(ctx context.Context, call string, target, origin int, p *peer) error {
	shared := p.control.pair(origin, sharedAt)
	if shared.Load() == 0 {
		return nil
	}
	wait := c.world.NewWaiter()
	defer wait.Finish()
	c.waitFor(&wait, origin, target)
	for shared.Load() != 0 {
		if err := wait.Unserved(call, target); err != nil {
			return err
		}
		if c.lostHolder(origin, &wait) {
			shared.Store(0)
			break
		}
		if err := c.pause(ctx, call, &wait); err != nil {
			return awaited(ctx, err, "%s shares the lock of rank %d", c.holderName(origin), target)
		}
	}
	return nil
}

// holders is how many may have a lock of a target: the ranks, and behind them the clients in its
// seats. The lock of a client that has failed is given back by the target, which alone knows of it.
func (c *core) holders() int { return c.size + c.hints.Seats }

// lostHolder tells whether the lock of a holder is to be broken: it has failed, or, which a wait looks at only when it is about
// to sleep, has left.
func (c *core) lostHolder(holder int, wait *job.Waiter) bool {
	return holder < c.size && (c.world.Failure(holder) != nil || wait.Left(holder)) && c.mayBreak(holder)
}

// mayBreak tells whether this rank may break a lock of one that has failed or left. One
// that failed elsewhere may be stopped, and go on later: see server.failed.
func (c *core) mayBreak(rank int) bool {
	return c.world.Mapped(rank) || c.world.Failure(rank) == nil
}

// ringHolder wakes the rank that a lock word names.
func (c *core) ringHolder(holder uint32) {
	if rank := holderOf(holder); rank >= 0 && rank < c.size {
		c.world.Ring(rank)
	}
}

// targetFailure is the error of a call that needs target, nil while it lives.
func (c *core) targetFailure(call string, target int) error {
	if c.world.FailureCount() == 0 {
		return nil
	}
	return c.peerError(call, target)
}
