package window

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/onesided/rma/internal/latch"
)

// The accumulate family is atomic for each element. Every element belongs to a stripe of the window's bytes, and is
// read and written under the stripe's lock. An operation over several stripes takes their locks one after the other. It
// is atomic for each element, not as a whole. It never waits for a lock while it holds one.
//
// A lock word names its holder: see lockWordOf. A holder keeps the lock while it combines at most the bytes of a
// stripe, or during two system calls that read and write them. It waits for no rank meanwhile, so waiters need no
// queue. If the holder has died, a waiter takes its lock over. The elements that the holder was writing have their old
// or new value, or, if larger than a word, a mixture.
//
// A lock is released by a plain store, so it must not be taken over from a holder that still runs. A process that has
// died does not run. But a rank that is a goroutine of this process has failed when its body has returned an error.
// Other goroutines of it may still be between taking a lock and releasing it. They will release it, so waiters wait for
// them.

const (
	stripeSpins  = 200
	stripeYields = 20
	stripeSleep  = 20 * time.Microsecond
)

// tryStripe takes a lock for a caller that must not wait. It fails if the lock is held for longer than it takes to
// combine a few elements.
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

// stripeLooks returns how often a waiter looks at a lock while its holder is likely to run.
func (c *core) stripeLooks() int {
	if c.world.Oversubscribed() {
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

// isDead reports whether the holder of a lock word will never release it, because its process has died. A word that
// names no rank was not written by the rules, and is broken, too.
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

// untilStripeEnd returns the number of elements from offset to the end of its stripe.
func (v *view) untilStripeEnd(p *peer, offset uint64) int {
	stripe := uint64(1) << p.control.stripeShift
	return int((stripe - offset&(stripe-1)) >> v.shift)
}
