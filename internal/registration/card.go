package registration

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/onesided/rma/regcache"
	"github.com/onesided/rma/scheduler/transfer"
	"github.com/onesided/rma/verbs"
)

// A Card gets the memory of the program to one device. Its methods may be called from any goroutine.
type Card struct {
	registry *Registry
	kind     Kind
	device   verbs.Device
	name     string
	reserved uint32
	model    *transfer.Model
	stages   Pool
	// cache is made when there is memory that the device does not know.
	cache atomic.Pointer[cache]
	// refused is set when the device has taken no more memory, stageless when there is no memory for stages.
	refused, stageless atomic.Bool
	counts             counts
}

const (
	// stageBytes is the length of a stage, and mostStages the number of stages of a card.
	stageBytes = 256 << 10
	mostStages = 12
)

func newCard(r *Registry, kind Kind, device verbs.Device) *Card {
	attributes, costs := device.Attributes(), device.Costs()
	c := &Card{registry: r, kind: kind, device: device, name: attributes.Name, reserved: attributes.ReservedLKey, model: transfer.NewModel(&costs, stageBytes)}
	c.stages = Pool{length: stageBytes, most: mostStages}
	c.stages.devices[kind] = device
	return c
}

// Model predicts how long the device's protocols take. Its pieces are no longer than a stage.
func (c *Card) Model() *transfer.Model { return c.model }

// NeedsKeys reports whether the device knows only memory that is registered.
func (c *Card) NeedsKeys() bool { return c.reserved == 0 }

// Key returns the key by which the device knows memory: the reserved one, or that of a Region of [Registry.Register]. It is 0 if
// the device does not know the memory.
func (c *Card) Key(memory []byte) uint32 {
	if c.reserved != 0 {
		return c.reserved
	}
	if r := c.registry.known.find(memory, verbs.LocalWrite); r != nil {
		return r.Key(c.kind)
	}
	return 0
}

// Use counts a use of memory without a Key, and reports whether it will go from where it is: it is kept registered, or about to
// be because it is used often.
func (c *Card) Use(memory []byte) bool {
	k := c.caching()
	k.mu.Lock()
	defer k.mu.Unlock()
	e, decision := k.policy.Use(k.address(memory), len(memory))
	if e != nil {
		k.policy.Release(e)
	}
	return decision != regcache.Copy
}

// Excess returns how much longer it takes to move bytes that the device does not know than bytes that it does, by the mean of
// writes and reads, in nanoseconds.
func (c *Card) Excess(bytes int) float64 {
	if !c.NeedsKeys() {
		return 0
	}
	_, excess, _ := c.caching().extra(bytes)
	return excess
}

// CopyBuffer returns a buffer to copy bytes through, or as many as it is long: an eager buffer for few, and else a stage. Without
// a free buffer it returns none, and the caller has requests complete that use some, and calls it again with waited. A caller that
// has waited leaves eager buffers to those that cannot wait. scarce is as in [Pool.Take].
func (c *Card) CopyBuffer(bytes int, waited bool) (b Buffer, scarce bool, err error) {
	eager := &c.registry.eager
	if bytes <= eager.length && !waited && !c.refused.Load() {
		if b, scarce, err = eager.Take(); err == nil {
			return b, scarce, nil
		}
		c.refuse(err)
	}
	if c.UsesStage(bytes) {
		if b, scarce, err = c.stages.Take(); err == nil {
			return b, scarce, nil
		}
		c.stageless.Store(true)
		c.refuse(fmt.Errorf("%d bytes to copy through: %w", stageBytes, err))
	}
	return eager.takeSpare()
}

// UsesStage reports whether bytes are copied through a stage, which requests of any connection give back, and not through an
// eager buffer, which messages give back too.
func (c *Card) UsesStage(bytes int) bool {
	return bytes > c.registry.eager.length && !c.stageless.Load()
}

// Tidy deregisters some of the regions that are neither kept nor in use any more. Every poll calls it: it loads two words if there
// are none.
func (c *Card) Tidy() {
	if k := c.cache.Load(); k != nil && k.untidy.Load() {
		k.tidy()
	}
}

// refuse logs, once, that the device takes no more memory.
func (c *Card) refuse(err error) {
	if errors.Is(err, verbs.ErrMemory) && !c.refused.Swap(true) {
		c.registry.config.Log.Warn("the card takes no more memory, and what it does not know is copied: raise the memory that may be locked (ulimit -l)",
			"card", c.name, "error", err)
	}
}

// caching returns the cache, which is made at its first use.
func (c *Card) caching() *cache {
	if k := c.cache.Load(); k != nil {
		return k
	}
	c.cache.CompareAndSwap(nil, newCache(c))
	return c.cache.Load()
}

// Transfers counts how memory got to a card that had no Key.
type Transfers struct {
	// Operations and Bytes are counted by protocol. Cache and CachingPipeline include memory that was registered earlier.
	Operations, Bytes [transfer.Protocols]uint64
	// Kept describes what is kept registered.
	Kept regcache.Stats
}

// counts are the counters of Transfers.
type counts [transfer.Protocols]struct{ operations, bytes atomic.Uint64 }

func (c *counts) add(p transfer.Protocol, operations, bytes int) {
	c[p].operations.Add(uint64(operations))
	c[p].bytes.Add(uint64(bytes))
}

// Transfers returns the counts so far.
func (c *Card) Transfers() (t Transfers) {
	for p := range c.counts {
		t.Operations[p], t.Bytes[p] = c.counts[p].operations.Load(), c.counts[p].bytes.Load()
	}
	if k := c.cache.Load(); k != nil {
		k.mu.Lock()
		defer k.mu.Unlock()
		t.Kept = k.policy.Stats()
	}
	return t
}
