package registration

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/onesided/rma/internal/bounds"
	"github.com/onesided/rma/internal/object"
	"github.com/onesided/rma/regcache"
	"github.com/onesided/rma/scheduler/transfer"
	"github.com/onesided/rma/verbs"
)

// A cache has the regions of one card that are kept. See the package's documentation for its invariants.
type cache struct {
	card *Card
	// puts and gets choose how memory moves that is not kept.
	puts, gets *transfer.Chooser

	mu     sync.Mutex
	policy *regcache.Policy[*kept]
	// identities are nil where time is real.
	identities *identities
	// closed is set when the device is about to be closed, which ends all regions.
	closed bool
	// trusting has look-ups return regions without a look at their objects, which is wrong: tests show by it that this is noticed.
	trusting bool
	// untidy is set while there may be something to retire or to deregister.
	untidy atomic.Bool

	// gone are the regions whose objects are gone. The runtime's goroutine of clean-ups takes goneMu and no other mutex.
	goneMu sync.Mutex
	gone   []*kept
}

// kept is a region that is kept, and weakly the object that its memory is part of.
type kept struct {
	cache  *cache
	entry  *keptEntry
	region verbs.MemoryRegion
	object object.Object
}

type keptEntry = regcache.Entry[*kept]

// alive reports whether the memory is still what was registered.
func (r *kept) alive() bool { return r.object.Alive() != nil }

func newCache(c *Card) *cache {
	k := &cache{card: c}
	allowed := c.registry.config.Protocols
	k.puts, k.gets = c.model.Chooser(allowed, true), c.model.Chooser(allowed, false)
	if c.registry.config.Virtual {
		k.identities = newIdentities()
	}
	k.policy = regcache.NewPolicy[*kept](k.extra, speculation(allowed), c.registry.config.Kept)
	return k
}

// keeping are the protocols that keep what they register.
const keeping = transfer.Set(1<<transfer.Cache | 1<<transfer.CachingPipeline)

// speculation is when memory that is used often is registered, by the protocols that are allowed.
func speculation(allowed transfer.Set) regcache.Speculation {
	switch {
	case allowed&keeping == 0:
		return regcache.Never
	case allowed&^keeping == 0:
		return regcache.Always
	}
	return regcache.Adaptive
}

// extra returns the time to move memory that the device knows, by the mean of writes and reads, the time that it takes longer if
// the device does not, and the time to register and deregister it, in nanoseconds.
func (k *cache) extra(bytes int) (using, moving, registering float64) {
	m := k.card.model
	using = float64((m.Direct(bytes) + m.DirectRead(bytes)) / 2)
	unknown := float64((m.Time(k.puts.Best(bytes), true, bytes) + m.Time(k.gets.Best(bytes), false, bytes)) / 2)
	return using, unknown - using, m.Registration(bytes) + m.Deregistration(bytes)
}

// address returns the address by which memory is known. It is called with the mutex.
func (k *cache) address(memory []byte) uint64 {
	if k.identities != nil {
		return k.identities.of(memory)
	}
	return bounds.Address(memory)
}

// lockedAddress is address, and takes the mutex.
func (k *cache) lockedAddress(memory []byte) uint64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.address(memory)
}

// find returns the kept region that has all of memory, which is then in use, or nil.
func (k *cache) find(memory []byte) *kept {
	k.mu.Lock()
	defer k.mu.Unlock()
	from := k.address(memory)
	return k.living(k.policy.Find(from, from+uint64(len(memory))))
}

// peek is find for a whole buffer. If there is no region it returns what to do with the buffer.
func (k *cache) peek(memory []byte) (*kept, regcache.Decision) {
	k.mu.Lock()
	defer k.mu.Unlock()
	e, decision := k.policy.Peek(k.address(memory), len(memory))
	r := k.living(e)
	if e != nil && r == nil {
		_, decision = k.policy.Peek(k.address(memory), len(memory))
	}
	return r, decision
}

// living returns the region of an entry that is in use. If its memory belongs to another object by now, living retires the region
// and returns nil. It is called with the mutex.
func (k *cache) living(e *keptEntry) *kept {
	switch {
	case e == nil:
		return nil
	case k.trusting || e.Region.alive():
		return e.Region
	}
	k.policy.Drop(e)
	k.policy.Release(e)
	k.untidy.Store(true)
	return nil
}

// keeps reports whether the first byte of memory is in a kept region.
func (k *cache) keeps(memory []byte) bool {
	r := k.find(memory[:min(len(memory), 1)])
	if r == nil {
		return false
	}
	r.release()
	return true
}

// keep registers memory to keep it. The region is in use. keep returns nil for memory outside of Go's heap, and if the device
// refuses.
func (k *cache) keep(memory []byte) *kept {
	r := &kept{cache: k}
	var ok bool
	if r.object, ok = object.Of(memory, (*kept).isGone, r); !ok {
		return nil
	}
	whole := k.cover(memory)
	k.tidy()
	const access = verbs.LocalWrite | verbs.Weak
	region, err := k.card.device.RegisterMemory(whole, access)
	if errors.Is(err, verbs.ErrMemory) {
		// Regions that are not in use give way. Those that another goroutine is deregistering in tidy may still be there: then the
		// device refuses again, and this buffer is copied.
		k.evictAll()
		region, err = k.card.device.RegisterMemory(whole, access)
	}
	if err != nil {
		r.object.Stop()
		k.card.refuse(err)
		return nil
	}
	r.region = region
	k.mu.Lock()
	from := k.address(whole)
	r.entry = k.policy.Add(from, from+uint64(len(whole)), r)
	if k.closed {
		k.policy.Clear()
	}
	k.mu.Unlock()
	return r
}

// evictAll keeps nothing any longer, and deregisters what is not in use.
func (k *cache) evictAll() {
	k.mu.Lock()
	k.policy.Clear()
	some := k.policy.AnyEnded()
	k.mu.Unlock()
	// A store of false could undo that of another goroutine's release. The loop ends: the flag is set again only if regions have
	// ended, and tidy deregisters them.
	if some {
		k.untidy.Store(true)
	}
	for k.untidy.Load() {
		k.tidy()
	}
}

// reject has memory not be registered to be kept, however often it is used.
func (k *cache) reject(memory []byte) {
	k.mu.Lock()
	k.policy.Reject(k.address(memory), len(memory))
	k.mu.Unlock()
}

// release ends the use of a region by a request.
func (r *kept) release() {
	k := r.cache
	k.mu.Lock()
	k.policy.Release(r.entry)
	ended, closed := k.policy.AnyEnded(), k.closed
	k.mu.Unlock()
	switch {
	case !ended:
	case closed:
		k.forget()
	default:
		k.untidy.Store(true)
	}
}

// isGone is called by the runtime when the object of a region is gone. In virtual time the region stays, because the times of
// collections must not be seen: a look-up finds it dead only if another object has its identity, which no object gets.
func (r *kept) isGone() {
	k := r.cache
	if k.identities != nil {
		return
	}
	k.goneMu.Lock()
	k.gone = append(k.gone, r)
	k.goneMu.Unlock()
	k.untidy.Store(true)
}

// close forgets everything, and what is in use when it is released. The close of the device ends the regions.
func (k *cache) close() {
	k.mu.Lock()
	k.closed = true
	k.policy.Clear()
	k.mu.Unlock()
	k.forget()
}

// forget stops the clean-ups of the regions that have ended after close, when nothing calls tidy any longer. A clean-up would keep
// the Registry as long as the program keeps the buffer.
func (k *cache) forget() {
	for {
		r, some := k.ended()
		if !some {
			return
		}
		r.object.Stop()
	}
}

// ended returns a region that has ended, if there is one.
func (k *cache) ended() (r *kept, some bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.policy.Ended()
}

// tidyAtOnce is the number of regions that are deregistered at once, because that may delay progress.
const tidyAtOnce = 16

// tidy retires regions whose objects are gone, and deregisters some of those that have ended.
func (k *cache) tidy() {
	if !k.untidy.Swap(false) {
		return
	}
	k.goneMu.Lock()
	gone := k.gone
	k.gone = nil
	k.goneMu.Unlock()
	k.mu.Lock()
	for _, r := range gone {
		k.policy.Drop(r.entry)
	}
	k.mu.Unlock()
	for range tidyAtOnce {
		r, some := k.ended()
		if !some {
			return
		}
		r.object.Stop()
		_ = r.region.Deregister()
	}
	k.untidy.Store(true)
}
