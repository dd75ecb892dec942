package window

import (
	"fmt"
	"sync/atomic"

	"github.com/onesided/rma/aggregate"
	"github.com/onesided/rma/internal/job"
)

// Counts counts operations by kind, and the bytes of the window that they touched.
type Counts struct {
	Puts, Gets uint64
	// Accumulates counts Accumulate and its variants, Fetches counts GetAccumulate and FetchAndOp, and Swaps counts
	// CompareAndSwap.
	Accumulates, Fetches, Swaps uint64
	Notifications               uint64
	Bytes                       uint64
}

// Operations returns the number of all operations.
func (c *Counts) Operations() uint64 {
	return c.Puts + c.Gets + c.Accumulates + c.Fetches + c.Swaps + c.Notifications
}

// Stats counts what this rank has done to a window so far.
type Stats struct {
	// Window is the number of the window, the same on all ranks.
	Window uint32
	// Mapped counts operations that this rank's processor applied. They are counted only if the World was made with
	// world.WithStats or RMA_STATS is set.
	Mapped Counts
	// Direct counts operations that were sent as work requests of their own. Packed counts those that were sent in a
	// packet, with other operations or with the synchronization. Packets counts the packets. Queued operations are not
	// counted yet. Several puts to adjacent or overlapping elements may count as one.
	Direct, Packed Counts
	Packets        uint64
	// Stalls counts how often operations had to wait for their target to end a Fence.
	Stalls uint64
}

// Stats returns the counts so far. It may be called at any time, also when the window is closed.
func (w *Window[T]) Stats() Stats { return w.calls().Stats() }

func (w *untyped) Stats() Stats {
	w.core.mustBeMade("Stats")
	return w.core.stats()
}

func (c *core) stats() Stats {
	s := Stats{Window: c.number}
	if c.watch != nil {
		for kind := range c.watch.operations {
			s.Mapped.add(aggregate.Kind(kind), c.watch.operations[kind].Load())
		}
		s.Mapped.Bytes = c.watch.bytes.Load()
	}
	for rank := range c.peers {
		p := c.peers[rank].Load()
		if p == nil || p.deferred == nil {
			continue
		}
		d := p.deferred
		d.mu.Lock()
		d.counts.direct.addTo(&s.Direct)
		d.counts.packed.addTo(&s.Packed)
		s.Packets += d.counts.packets
		s.Stalls += d.counts.stalls
		d.mu.Unlock()
	}
	return s
}

func (c *Counts) add(kind aggregate.Kind, n uint64) {
	switch kind {
	case aggregate.Put:
		c.Puts += n
	case aggregate.Get:
		c.Gets += n
	case aggregate.Accumulate:
		c.Accumulates += n
	case aggregate.Fetch:
		c.Fetches += n
	case aggregate.Swap:
		c.Swaps += n
	case aggregate.Notify:
		c.Notifications += n
	}
}

const kinds = aggregate.Notify + 1

// kindCounts counts operations by kind, and their bytes.
type kindCounts struct {
	operations [kinds]uint64
	bytes      uint64
}

func (k *kindCounts) count(kind aggregate.Kind, operations, bytes int) {
	k.operations[kind] += uint64(operations)
	k.bytes += uint64(bytes)
}

func (k *kindCounts) addTo(c *Counts) {
	for kind, n := range k.operations {
		c.add(aggregate.Kind(kind), n)
	}
	c.Bytes += k.bytes
}

// deferredCounts counts the operations that have left a queue, under the mutex of the queue.
type deferredCounts struct {
	direct, packed  kindCounts
	packets, stalls uint64
}

// account adds the counts of the window to the table of the World.
func (c *core) account() {
	if !c.world.Counts() {
		return
	}
	s, of := c.stats(), fmt.Sprintf("window %d", c.number)
	for _, way := range []struct {
		name   string
		counts *Counts
	}{{"mapped", &s.Mapped}, {"direct", &s.Direct}, {"packed", &s.Packed}} {
		for _, row := range []job.Account{
			{What: "puts", Count: way.counts.Puts}, {What: "gets", Count: way.counts.Gets},
			{What: "accumulates", Count: way.counts.Accumulates}, {What: "fetches", Count: way.counts.Fetches},
			{What: "swaps", Count: way.counts.Swaps}, {What: "notifications", Count: way.counts.Notifications},
			{What: "operations", Count: way.counts.Operations(), Bytes: way.counts.Bytes},
		} {
			if row.Count > 0 {
				row.Of, row.What = of, row.What+", "+way.name
				c.world.Account(row)
			}
		}
	}
	if s.Packets > 0 {
		c.world.Account(job.Account{Of: of, What: "packets", Count: s.Packets})
	}
}

// watchCounts counts operations on mapped memory.
type watchCounts struct {
	operations [kinds]atomic.Uint64
	bytes      atomic.Uint64
}
