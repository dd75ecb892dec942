package job

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/onesided/rma/internal/bounds"
	"github.com/onesided/rma/internal/object"
	"github.com/onesided/rma/regcache"
	"github.com/onesided/rma/scheduler/transfer"
	"github.com/onesided/rma/verbs"
)

// origins is how a card that needs registered memory gets to that of the program: what operations
// write from, and read into. What the program has registered goes as it is. Of the rest uses are
// counted, and what is used frequently is registered and kept (package regcache); everything else
// goes by the protocol that takes the least time (package transfer).
//
// # Kept honest
//
// The program's memory is Go's: the collector frees it, and may give its pages back to the system,
// which a card does not hear of. So what is kept does not keep the memory alive (verbs.Weak), but
// knows the object that it is part of, weakly: it is used only while that is there, and is retired
// when it is gone. Memory that is not on Go's heap is not kept; the program registers it if it likes
// (World.Register).
//
// # Invariants
//
//   - A kept region that a request names is in use, from before it is posted until it has completed.
//     The request keeps the memory alive meanwhile.
//   - A region is deregistered when it is neither known nor in use any more, by progress or by who
//     registers the next, and without the mutex.
//   - The mutex is held for short, and under no lock that others spin for.
type origins struct {
	card    *card
	world   *World
	allowed transfer.Set
	// puts and gets choose how what is not kept goes.
	puts, gets *transfer.Chooser
	stages     slots
	// stageless tells that there is no memory for stages, and refused that a registration was.
	stageless, refused atomic.Bool

	mu     sync.Mutex
	policy *regcache.Policy[*kept]
	// identities are nil where time is real.
	identities *identities
	// untidy tells that there is something to retire.
	untidy atomic.Bool
	// trusting has memory be taken for what was registered without a look at its object, which is
	// wrong: for tests of what notices that.
	trusting bool

	goneMu sync.Mutex
	gone   []*kept

	moved [transfer.Protocols]struct{ operations, bytes atomic.Uint64 }
}

// Transfers counts how memory that a card needs to know, and was not told of, has got to it.
type Transfers struct {
	// Operations and Bytes are what went by each protocol, by that: of Cache and CachingPipeline
	// what was registered then, or before.
	Operations, Bytes [transfer.Protocols]uint64
	// Kept is what is kept registered, and what became of it.
	Kept regcache.Stats
}

// Transfers tells how memory has got to the network card that this rank's program had not registered:
// nothing, where the card knows all memory.
func (w *World) Transfers() (t Transfers) {
	c := w.cards[networkCard]
	if c == nil {
		return t
	}
	o := c.origins.Load()
	if o == nil {
		return t
	}
	for p := range o.moved {
		t.Operations[p], t.Bytes[p] = o.moved[p].operations.Load(), o.moved[p].bytes.Load()
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	t.Kept = o.policy.Stats()
	return t
}

// count notes that memory goes by a protocol.
func (o *origins) count(p transfer.Protocol, bytes int) {
	o.moved[p].operations.Add(1)
	o.moved[p].bytes.Add(uint64(bytes))
}

// kept is a region that is kept.
type kept struct {
	origins *origins
	entry   *keptEntry
	region  verbs.MemoryRegion
	object  object.Object
}

type keptEntry = regcache.Entry[*kept]

// alive tells whether the memory is still what was registered.
func (k *kept) alive() bool { return k.object.Alive() != nil }

// origins is how the link's card, which needs registered memory, gets to that which it was not told
// of.
func (l *Link) origins() *origins {
	c := l.card
	if c.origins.Load() == nil {
		c.origins.CompareAndSwap(nil, newOrigins(l.world, c))
	}
	return c.origins.Load()
}

func newOrigins(w *World, c *card) *origins {
	o := &origins{world: w, card: c, allowed: transfer.All &^ w.settings.tuning.NoProtocols}
	o.puts, o.gets = c.model.Chooser(o.allowed, true), c.model.Chooser(o.allowed, false)
	var only [cardKinds]*card
	only[c.kind] = c
	o.stages = slots{cards: &only, length: stageBytes, most: mostStages}
	if w.virtual() {
		o.identities = newIdentities()
	}
	o.policy = regcache.NewPolicy[*kept](o.extra, o.speculation(), w.settings.kept)
	return o
}

// keeping are the protocols that keep what they register.
const keeping = transfer.Set(1<<transfer.Cache | 1<<transfer.CachingPipeline)

// speculation is when what is used often is registered, of what the World may do.
func (o *origins) speculation() regcache.Speculation {
	switch {
	case o.allowed&keeping == 0:
		return regcache.Never
	case o.allowed&^keeping == 0:
		return regcache.Always
	}
	return regcache.Adaptive
}

// extra is what it takes to move memory once that the card knows, by the mean of puts and gets, how much
// longer that takes if it does not, and what it takes to register and deregister it, in nanoseconds.
func (o *origins) extra(bytes int) (using, moving, registering float64) {
	m := o.card.model
	using = float64((m.Direct(bytes) + m.DirectRead(bytes)) / 2)
	unknown := float64((m.Time(o.puts.Best(bytes), true, bytes) + m.Time(o.gets.Best(bytes), false, bytes)) / 2)
	return using, unknown - using, m.Registration(bytes) + m.Deregistration(bytes)
}

// use notes a use of memory, and tells whether the card knows it, or is going to be told.
func (o *origins) use(memory []byte) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	e, verdict := o.policy.Use(o.address(memory), len(memory))
	if e != nil {
		o.policy.Release(e)
	}
	return verdict != regcache.Copy
}

// address is that by which memory is known. It is called with the mutex.
func (o *origins) address(memory []byte) uint64 {
	if o.identities != nil {
		return o.identities.of(memory)
	}
	return bounds.Address(memory)
}

// cut is the address by which memory is cut into pieces.
func (o *origins) cut(memory []byte) uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.address(memory)
}

// find gives the kept region that has all of memory, which is in use then, or nil.
func (o *origins) find(memory []byte) *kept {
	o.mu.Lock()
	defer o.mu.Unlock()
	from := o.address(memory)
	return o.living(o.policy.Find(from, from+uint64(len(memory))))
}

// peek is find of a whole buffer, and tells what to do with it where there is none.
func (o *origins) peek(memory []byte) (*kept, regcache.Decision) {
	o.mu.Lock()
	defer o.mu.Unlock()
	e, verdict := o.policy.Peek(o.address(memory), len(memory))
	k := o.living(e)
	if e != nil && k == nil {
		_, verdict = o.policy.Peek(o.address(memory), len(memory))
	}
	return k, verdict
}

// living gives the region of an entry that is in use, nil if that has been retired because its memory
// is another's.
func (o *origins) living(e *keptEntry) *kept {
	switch {
	case e == nil:
		return nil
	case o.trusting || e.Region.alive():
		return e.Region
	}
	o.policy.Drop(e)
	o.policy.Release(e)
	o.untidy.Store(true)
	return nil
}

// knows tells whether the first byte of memory is in a kept region.
func (o *origins) knows(memory []byte) bool {
	k := o.find(memory[:min(len(memory), 1)])
	if k == nil {
		return false
	}
	k.release()
	return true
}

// keep registers memory to keep it, which is in use then: nil if it is none to be kept, or refused.
func (o *origins) keep(memory []byte) *kept {
	k := &kept{origins: o}
	var ok bool
	if k.object, ok = object.Of(memory, (*kept).isGone, k); !ok {
		return nil
	}
	whole := o.cover(memory)
	o.tidy()
	region, err := o.card.device.RegisterMemory(whole, verbs.LocalWrite|verbs.Weak)
	if errors.Is(err, verbs.ErrMemory) {
		// What nobody uses gives way.
		o.retire()
		region, err = o.card.device.RegisterMemory(whole, verbs.LocalWrite|verbs.Weak)
	}
	if err != nil {
		k.object.Stop()
		o.refuse(err)
		return nil
	}
	k.region = region
	o.mu.Lock()
	// It is noted with the buffer that was asked for last.
	if e, _ := o.policy.Peek(o.address(memory), len(memory)); e != nil {
		o.policy.Release(e)
	}
	from := o.address(whole)
	k.entry = o.policy.Add(from, from+uint64(len(whole)), k)
	o.mu.Unlock()
	return k
}

// retire has nothing kept that is not in use.
func (o *origins) retire() {
	o.mu.Lock()
	o.policy.Clear()
	some := o.policy.AnyEnded()
	o.mu.Unlock()
	for o.untidy.Store(some); o.untidy.Load(); {
		o.tidy()
	}
}

// unfit has memory not be registered however frequent it is.
func (o *origins) unfit(memory []byte) {
	o.mu.Lock()
	o.policy.Reject(o.address(memory), len(memory))
	o.mu.Unlock()
}

// refuse says, once, that a registration was refused.
func (o *origins) refuse(err error) {
	if errors.Is(err, verbs.ErrMemory) && !o.refused.Swap(true) {
		o.world.logger.Warn("the card takes no more memory, and what it does not know is copied: raise the memory that may be locked (ulimit -l)",
			"card", o.card.attributes.Name, "error", err)
	}
}

// noStages notes that there is no memory for stages.
func (o *origins) noStages(err error) {
	o.stageless.Store(true)
	o.refuse(fmt.Errorf("%d bytes to copy through: %w", stageBytes, err))
}

// release ends the use of a kept region by a request.
func (k *kept) release() {
	o := k.origins
	o.mu.Lock()
	o.policy.Release(k.entry)
	ended := o.policy.AnyEnded()
	o.mu.Unlock()
	if ended {
		o.untidy.Store(true)
	}
}

// isGone is called when the object of a kept region is no more, by the runtime. In virtual time that
// makes no difference: when the collector runs must not be seen.
func (k *kept) isGone() {
	o := k.origins
	if o.identities != nil {
		return
	}
	o.goneMu.Lock()
	o.gone = append(o.gone, k)
	o.goneMu.Unlock()
	o.untidy.Store(true)
}

// close forgets everything, before the card is closed and with that all regions.
func (o *origins) close() {
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

// tidyAtOnce is how many regions are deregistered at once, which may hold progress up.
const tidyAtOnce = 16

// tidy retires regions whose objects are gone, and deregisters some of those that nobody wants.
func (o *origins) tidy() {
	if !o.untidy.Swap(false) {
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

// move moves memory that the card does not know for sure.
func (o *origins) move(ctx context.Context, l *Link, opcode verbs.Opcode, memory []byte, remote verbs.RemoteRegion, offset uint64) error {
	if len(memory) < regcache.Floor {
		return o.moveOnce(ctx, l, opcode, memory, remote, offset)
	}
	switch k, verdict := o.peek(memory); {
	case k != nil:
		o.count(transfer.Cache, len(memory))
		return l.moveAs(ctx, opcode, memory, k.region.LKey(), holding{kept: k, memory: memory}, remote, offset)
	case verdict == regcache.Register:
		return o.moveKept(ctx, l, opcode, memory, remote, offset)
	}
	return o.moveOnce(ctx, l, opcode, memory, remote, offset)
}

// moveKept moves memory that is registered for that and kept: as one, or in pieces each of which is
// on the wire while the next is registered. Of the latter a head is copied meanwhile; it is registered
// when the rest is known, if all may be.
func (o *origins) moveKept(ctx context.Context, l *Link, opcode verbs.Opcode, memory []byte, remote verbs.RemoteRegion, offset uint64) error {
	write, m := opcode == verbs.OpRDMAWrite, o.card.model
	protocol, all := transfer.Cache, o.allowed.Has(transfer.Cache)
	if o.allowed.Has(transfer.CachingPipeline) && (!all || len(memory) > m.Piece() && m.Time(transfer.CachingPipeline, write, len(memory)) < m.Time(transfer.Cache, write, len(memory))) {
		protocol = transfer.CachingPipeline
	}
	whole := memory
	defer func() { o.count(protocol, len(whole)-len(memory)) }()
	defer o.world.endStep(protocol.String(), o.world.BeginSpan())
	pieces := m.Cut(protocol, write, len(memory))
	for len(memory) > 0 {
		next, _ := pieces.Next(o.cut(memory))
		piece := memory[:next.Bytes:next.Bytes]
		if next.Copied && !(all && o.knows(memory[next.Bytes:])) {
			if err := l.stage(ctx, opcode, piece, true, remote, offset); err != nil {
				return err
			}
			memory, offset = memory[next.Bytes:], offset+uint64(next.Bytes)
			continue
		}
		k := o.find(piece)
		if k == nil {
			if k = o.keep(piece); k == nil {
				o.unfit(whole)
				return o.moveOnce(ctx, l, opcode, memory, remote, offset)
			}
		}
		if err := l.moveAs(ctx, opcode, piece, k.region.LKey(), holding{kept: k, memory: piece}, remote, offset); err != nil {
			return err
		}
		memory, offset = memory[next.Bytes:], offset+uint64(next.Bytes)
	}
	return nil
}

// moveOnce moves memory that is not kept.
func (o *origins) moveOnce(ctx context.Context, l *Link, opcode verbs.Opcode, memory []byte, remote verbs.RemoteRegion, offset uint64) error {
	chooser := o.puts
	if opcode == verbs.OpRDMARead {
		chooser = o.gets
	}
	protocol := chooser.Best(len(memory))
	o.count(protocol, len(memory))
	defer o.world.endStep(protocol.String(), o.world.BeginSpan())
	switch protocol {
	case transfer.Register, transfer.Pipeline:
		return l.registered(ctx, opcode, memory, protocol, remote, offset)
	default:
		return l.through(ctx, opcode, memory, protocol, remote, offset)
	}
}
