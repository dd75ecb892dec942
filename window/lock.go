package window

import (
	"context"
	"fmt"

	"github.com/onesided/rma/internal/job"
)

// The lock of a target consists of words in the target's control block: one for the exclusive holder, and one for each
// origin as a shared holder.
//
//   - A shared locker stores 1 in its own word, then loads the exclusive word. If that is taken, it stores 0 again and
//     waits.
//   - An exclusive locker takes the exclusive word by compare-and-swap, then waits until every shared word is 0.
//
// These accesses are sequentially consistent, and each side stores before it loads. So of two that conflict at least
// one sees the other. An exclusive locker keeps the exclusive word while it waits. So new shared lockers stay out, and
// it does not starve. A shared lock touches no word that another holder writes. Every word names its holder: a rank
// that waits for a holder that has failed or left resets that holder's words.
//
// turn.go decides whether a rank that maps the lock or one that requests it by a message is next.
//
// A sleeper adds itself to the waiters count and to its own waiting word before it loads the exclusive word for the
// last time. An exclusive unlock loads the count after it has reset the exclusive word. So it wakes a sleeper that has
// not seen the reset. A shared unlock loads the exclusive word after it has reset its own, and wakes the rank that the
// word names.

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

// tryShared takes a shared lock if no rank has the exclusive one.
func (c *core) tryShared(p *peer) bool {
	mine := p.control.pair(c.rank, sharedAt)
	exclusive := p.control.exclusive()
	mine.Store(1)
	if exclusive.Load() == 0 {
		return true
	}
	mine.Store(0)
	// Another rank may have taken the exclusive word meanwhile, and wait for this one.
	c.ringHolder(exclusive.Load())
	return false
}

func (c *core) unlockShared(p *peer) { c.giveBackShared(p, c.rank) }

// giveBackShared releases the shared lock of a rank.
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

// unlockExclusive resets the exclusive word, unless other ranks took this rank for dead and one of them has it now.
func (c *core) unlockExclusive(target int, p *peer) {
	left := p.control.leaveToAgents()
	p.control.exclusive().CompareAndSwap(c.lockWord, 0)
	c.ringWaiters(p)
	if left {
		c.world.Ring(target)
	}
}

// ringWaiters wakes the ranks that wait for the exclusive word.
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

// awaitUnlocked waits until no rank has the exclusive word. It breaks the lock of a dead holder where it may. If the
// caller wants the exclusive word itself, it also waits for its turn.
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
			// No other rank wakes this one when it has waited long enough.
			wait.Brief()
		}
		if err := wait.Unserved(call, target); err != nil {
			return err
		}
		// Another process may write such words again and again, until ctx ends.
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

// waitFor sets the rank that a wait is for. That is the holder of a lock, or the target if the holder is a client or
// about to change.
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

// lockWordOf returns the word of an exclusive lock or a stripe that a holder has. 0 means no holder. The words of
// holders are far apart. A word with a damaged bit, for instance, names no holder, and is broken like that of a dead
// holder.
func lockWordOf(holder int) uint32 { return uint32(holder+1) * lockFactor }

// holderOf returns the holder that a lock word names, or -1 if it is 0. For a word that names no holder the result is
// larger than the number of every holder.
func holderOf(word uint32) int { return int(word*lockInverse) - 1 }

// holderName returns the name of a holder for errors.
func (c *core) holderName(holder int) string {
	switch {
	case holder >= c.holders():
		return "a damaged word"
	case holder >= c.size:
		return "a client"
	}
	return fmt.Sprintf("rank %d", holder)
}

// awaitShared waits until origin has no shared lock. It breaks the lock of a dead origin.
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

// holders returns the number of possible holders of a target's lock: the ranks, and after them the clients in its
// seats. The target releases the lock of a client that has failed, because only the target knows of the failure.
func (c *core) holders() int { return c.size + c.hints.Seats }

// lostHolder reports whether the lock of a holder is to be broken, because the holder has failed or left. A wait looks
// only when it is about to sleep whether the holder has left.
func (c *core) lostHolder(holder int, wait *job.Waiter) bool {
	return holder < c.size && (c.world.Failure(holder) != nil || wait.Left(holder)) && c.mayBreak(holder)
}

// mayBreak reports whether this rank may break a lock of one that has failed or left. A rank that failed on another
// host may only be stopped, and continue later: see server.failed.
func (c *core) mayBreak(rank int) bool {
	return c.world.Mapped(rank) || c.world.Failure(rank) == nil
}

// ringHolder wakes the rank that a lock word names.
func (c *core) ringHolder(holder uint32) {
	if rank := holderOf(holder); rank >= 0 && rank < c.size {
		c.world.Ring(rank)
	}
}

// targetFailure returns the error of a call that needs target, or nil while target lives.
func (c *core) targetFailure(call string, target int) error {
	if c.world.FailureCount() == 0 {
		return nil
	}
	return c.peerError(call, target)
}
