package window

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/onesided/rma/internal/latch"
)

// An accumulate of one element somewhere in a large window takes a memory latency. The processor could overlap several
// of them. But each takes some hundred instructions, and the processor looks only a few hundred ahead. So accumulates
// are held: at first each only prefetches its element, all at the same time. When a batch is full it is applied.
//
// Invariants:
//
//   - A held accumulate was issued in an epoch that is still open, or that a closing call is about to apply. hold loads
//     the state of the epoch under the latch. A call that closes an epoch stores that state before it takes the latch.
//     So it finds the accumulates that were held before, and a later hold finds the epoch closed.
//   - Accumulates of this rank are applied in program order. The held ones are applied in their order, before any other
//     operation of the family.
//   - Nothing waits under the latch. If a batch comes to a stripe that is taken, its rest is applied without the latch.
//     Another batch fills meanwhile, and is not applied before.
//   - An origin buffer is not held: its element is copied.

const (
	// mostHeld is the size of a batch, a power of two. More prefetches than a processor can have in flight would gain
	// nothing.
	mostHeld = 16
	// farBytes is the size from which the elements of a window are assumed to be outside the second-level cache.
	farBytes = 1 << 20
)

// heldBack has the held accumulates of a rank on a window. The latch guards it. state may be loaded without the latch.
type heldBack struct {
	latch latch.Latch
	// state is the number of updates in the batch that fills. busy is added while the other batch is applied without
	// the latch. 0 means that all accumulates have been applied.
	state atomic.Uint32
	// another is set if an accumulate was issued since the last settle. The first one is applied at once, because it
	// may remain the only one. another decides nothing else, so goroutines may set it in any order.
	another atomic.Uint32
	// updates has two batches. The one that fills starts at first. The other belongs to the goroutine that made state
	// busy.
	first   uint32
	updates [2 * mostHeld]update
}

const busy = 1 << 31

// alone reports whether an accumulate is the first since the last settle. If so, nothing is held that this goroutine
// would have to follow.
func (h *heldBack) alone() bool {
	if h.another.Load() != 0 {
		return false
	}
	latch.Release(&h.another, 1)
	return h.state.Load() == 0
}

// settle applies the held accumulates.
func (c *core) settle() {
	if c.held.another.Load() != 0 {
		latch.Release(&c.held.another, 0)
	}
	if c.held.state.Load() != 0 {
		c.applyHeld()
	}
}

// settleClosed is settle after an epoch was closed. It takes the latch even if state is 0, because another goroutine
// that has loaded the open epoch may be about to hold an accumulate.
func (c *core) settleClosed() {
	if c.far {
		latch.Release(&c.held.another, 0)
		c.applyHeld()
	}
}

// applyHeld applies the held accumulates, or waits until another goroutine has. On a closed window they are dropped.
func (c *core) applyHeld() {
	h := &c.held
	for looks := 0; ; looks++ {
		h.latch.Lock()
		n := h.state.Load()
		switch {
		case n == 0:
			h.latch.Unlock()
			return
		case n&busy == 0:
			if c.closed.Load() {
				latch.Release(&h.state, 0)
			} else {
				c.applyBatch(n)
			}
			h.latch.Unlock()
			return
		}
		h.latch.Unlock()
		if looks < stripeYields {
			runtime.Gosched()
		} else {
			time.Sleep(stripeSleep)
		}
	}
}

// applyBatch applies the n updates of the batch that fills. The caller holds the latch, and no batch is being applied.
// If applyBatch comes to a stripe that is taken, it releases the latch until it has applied the rest. The other batch
// fills meanwhile.
func (c *core) applyBatch(n uint32) {
	h := &c.held
	batch := h.updates[h.first:][:n]
	batch = batch[c.applyFree(batch):]
	if len(batch) == 0 {
		latch.Release(&h.state, 0)
		return
	}
	h.first ^= mostHeld
	latch.Release(&h.state, busy)
	h.latch.Unlock()
	for len(batch) > 0 {
		c.applyWaiting(&batch[0])
		batch = batch[1:]
		batch = batch[c.applyFree(batch):]
	}
	h.latch.Lock()
	latch.Release(&h.state, h.state.Load()&^busy)
}

// makeRoom returns the state once the batch that fills has room. The caller holds the latch. makeRoom releases it while
// it applies a batch.
func (c *core) makeRoom() uint32 {
	h := &c.held
	for {
		switch n := h.state.Load(); {
		case n&mostHeld == 0:
			return n
		case n&busy == 0:
			c.applyBatch(n)
		default:
			h.latch.Unlock()
			c.applyHeld()
			h.latch.Lock()
		}
	}
}
