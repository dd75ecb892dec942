package window

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/onesided/rma/internal/latch"
)

// The accumulate family is atomic per element because every element belongs to a
// stripe of the window's bytes and is read and written under the stripe's lock.
// An operation over several stripes takes them one after the other: it is atomic
// per element, not as a whole, and never waits for a lock while it holds one.
//
// A lock word names its holder: see lockWordOf. A holder keeps it for the time of
// combining at most a stripe's bytes, or of two system calls that read and write them,
// and waits for nobody meanwhile, so a waiter needs no queue. A lock whose holder has
// died is taken over from it; the elements that the dead was writing have their old
// or new value, or, larger than a word, a mixture.
//
// A lock is given back by a plain store, so it must not be taken over from who runs on.
// A process that has died does not. But a rank that is a goroutine of this process has
// failed when its body has returned an error, and other goroutines of it may still be
// between taking a lock and giving it back: they will, so they are waited for.

const (
	stripeSpins  = 200
	stripeYields = 20
	stripeSleep  = 20 * time.Microsecond
)

// tryStripe takes a lock, for somebody who must not wait, unless it is held for longer
// than it takes to combine a few elements.
func (c *core) tryStripe(word *atomic.Uint32) bool {
	for range c.stripeLooks() {
		if word.CompareAndSwap(0, c.lockWord) {
			c.tookStripe()
			return true
		}
	}
	if holder := word.Load(); c.isDead(holder) && word.CompareAndSwap(holder, c.lockWord) {
		c.tookStripe()
		return true
	}
	return false
}

// stripeLooks is how often a lock is looked at while its holder is likely to run.
func (c *core) stripeLooks() int {
	if c.world.Crowded() {
		return 1
	}
	return stripeSpins
}

func (c *core) lockStripe(word *atomic.Uint32) {
	if !word.CompareAndSwap(0, c.lockWord) {
		c.waitStripe(word)
	}
	c.tookStripe()
}

func (c *core) giveStripe(word *atomic.Uint32) {
	c.givingStripe()
	latch.Release(word, 0)
}

func (c *core) waitStripe(word *atomic.Uint32) {
	me := c.lockWord
	spins := c.stripeLooks()
	for i := 0; ; i++ {
		holder := word.Load()
		if holder == 0 && word.CompareAndSwap(0, me) {
			return
		}
		switch {
		case i < spins:
		case i < spins+stripeYields:
			runtime.Gosched()
		default:
			if c.isDead(holder) && word.CompareAndSwap(holder, me) {
				return
			}
			time.Sleep(stripeSleep)
		}
	}
}

// isDead tells whether the holder of a lock word will not give it back: its process has
// died. A word that names no rank was written by nobody who keeps the rules, and is
// broken too.
func (c *core) isDead(holder uint32) bool {
	c = c.host
	rank := holderOf(holder)
	if rank >= c.size {
		return true
	}
	if holder == 0 || c.world.FailureCount() == 0 {
		return false
	}
	return !c.here[rank].Load() && c.world.Failure(rank) != nil
}

// untilStripeEnd is how many elements from offset on are in its stripe.
func (v *view) untilStripeEnd(p *peer, offset uint64) int {
	stripe := uint64(1) << p.control.stripeShift
	return int((stripe - offset&(stripe-1)) >> v.shift)
}
