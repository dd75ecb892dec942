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
func (k *kept) alive() bool { return k.object.Alive() != nil }

func newCache(c *Card) *cache {
	o := &cache{card: c}
	allowed := c.registry.config.Protocols
	o.puts, o.gets = c.model.Chooser(allowed, true), c.model.Chooser(allowed, false)
	if c.registry.config.Virtual {
		o.identities = newIdentities()
	}
	o.policy = regcache.NewPolicy[*kept](o.extra, speculation(allowed), c.registry.config.Kept)
	return o
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
func (o *cache) extra(bytes int) (using, moving, registering float64) {
	m := o.card.model
	using = float64((m.Direct(bytes) + m.DirectRead(bytes)) / 2)
	unknown := float64((m.Time(o.puts.Best(bytes), true, bytes) + m.Time(o.gets.Best(bytes), false, bytes)) / 2)
	return using, unknown - using, m.Registration(bytes) + m.Deregistration(bytes)
}

// address returns the address by which memory is known. It is called with the mutex.
func (o *cache) address(memory []byte) uint64 {
	if o.identities != nil {
		return o.identities.of(memory)
	}
	return bounds.Address(memory)
}

// cut returns the address by which memory is cut into pieces.
func (o *cache) cut(memory []byte) uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.address(memory)
}

// find returns the kept region that has all of memory, which is then in use, or nil.
func (o *cache) find(memory []byte) *kept {
	o.mu.Lock()
	defer o.mu.Unlock()
	from := o.address(memory)
	return o.living(o.policy.Find(from, from+uint64(len(memory))))
}

// peek is find for a whole buffer. If there is no region it returns what to do with the buffer.
func (o *cache) peek(memory []byte) (*kept, regcache.Decision) {
	o.mu.Lock()
	defer o.mu.Unlock()
	e, decision := o.policy.Peek(o.address(memory), len(memory))
	k := o.living(e)
	if e != nil && k == nil {
		_, decision = o.policy.Peek(o.address(memory), len(memory))
	}
	return k, decision
}

// living returns the region of an entry that is in use. If its memory belongs to another object by now, living retires the region
// and returns nil. It is called with the mutex.
func (o *cache) living(e *keptEntry) *kept {
	switch {
	case e == nil:
		return nil
	case e.Region.alive():
		return e.Region
	}
	o.policy.Drop(e)
	o.policy.Release(e)
	o.untidy.Store(true)
	return nil
}

// knows reports whether the first byte of memory is in a kept region.
func (o *cache) knows(memory []byte) bool {
	k := o.find(memory[:min(len(memory), 1)])
	if k == nil {
		return false
	}
	k.release()
	return true
}

// keep registers memory to keep it. The region is in use. keep returns nil for memory outside of Go's heap, and if the device
// refuses.
func (o *cache) keep(memory []byte) *kept {
	k := &kept{cache: o}
	var ok bool
	if k.object, ok = object.Of(memory, (*kept).isGone, k); !ok {
		return nil
	}
	whole := o.cover(memory)
	o.tidy()
	const access = verbs.LocalWrite | verbs.Weak
	region, err := o.card.device.RegisterMemory(whole, access)
	if errors.Is(err, verbs.ErrMemory) {
		// Regions that are not in use give way.
		o.retire()
		region, err = o.card.device.RegisterMemory(whole, access)
	}
	if err != nil {
		k.object.Stop()
		o.card.refuse(err)
		return nil
	}
	k.region = region
	o.mu.Lock()
	// The policy notes the entry with the buffer that it was asked for last.
	if e, _ := o.policy.Peek(o.address(memory), len(memory)); e != nil {
		o.policy.Release(e)
	}
	from := o.address(whole)
	k.entry = o.policy.Add(from, from+uint64(len(whole)), k)
	o.mu.Unlock()
	return k
}

// retire deregisters everything that is not in use.
func (o *cache) retire() {
	o.mu.Lock()
	o.policy.Clear()
	some := o.policy.AnyEnded()
	o.mu.Unlock()
	for o.untidy.Store(some); o.untidy.Load(); {
		o.tidy()
	}
}

// reject has memory not be registered to be kept, however often it is used.
func (o *cache) reject(memory []byte) {
	o.mu.Lock()
	o.policy.Reject(o.address(memory), len(memory))
	o.mu.Unlock()
}

// release ends the use of a region by a request.
func (k *kept) release() {
	o := k.cache
	o.mu.Lock()
	o.policy.Release(k.entry)
	ended := o.policy.AnyEnded()
	o.mu.Unlock()
	if ended {
		o.untidy.Store(true)
	}
}

// isGone is called by the runtime when the object of a region is gone. In virtual time the region stays, because the times of
// collections must not be seen: a look-up finds it dead only if another object has its identity, which no object gets.
func (k *kept) isGone() {
	o := k.cache
	if o.identities != nil {
		return
	}
	o.goneMu.Lock()
	o.gone = append(o.gone, k)
	o.goneMu.Unlock()
	o.untidy.Store(true)
}

// close forgets everything. The close of the device ends the regions.
func (o *cache) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.policy.Clear()
	for {
		k, some := o.policy.Ended()
		if !some {
			return
		}
		k.object.Stop()
	}
}

// tidyAtOnce is the number of regions that are deregistered at once, because that may delay progress.
const tidyAtOnce = 16

// tidy retires regions whose objects are gone, and deregisters some of those that have ended.
func (o *cache) tidy() {
	if !o.untidy.Load() || !o.untidy.Swap(false) {
		return
	}
	o.goneMu.Lock()
	gone := o.gone
	o.gone = nil
	o.goneMu.Unlock()
	o.mu.Lock()
	for _, k := range gone {
		o.policy.Drop(k.entry)
	}
	o.mu.Unlock()
	for range tidyAtOnce {
		o.mu.Lock()
		k, some := o.policy.Ended()
		o.mu.Unlock()
		if !some {
			return
		}
		k.object.Stop()
		_ = k.region.Deregister()
	}
	o.untidy.Store(true)
}
