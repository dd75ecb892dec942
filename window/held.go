package window

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/onesided/rma/internal/latch"
)

// An accumulate of one element somewhere in a large window costs a memory latency.
// The processor would overlap several, but each is some hundred instructions, of
// which it looks at few hundred ahead. So they are held back: the first only fetch
// their elements into the cache, all at once, and when a batch is together it is
// applied.
//
// Invariants:
//
//   - What is held was issued in an epoch that is still open, or that a call is
//     closing which will apply it first. hold looks at the epoch under the latch; a
//     call that closes an epoch takes the latch after it has: it finds what was held
//     before, and who comes later finds the epoch closed.
//   - Accumulates of this rank are applied in program order: what is held, in its
//     order, before any operation of the family that is not held.
//   - Nobody waits under the latch: where a batch comes to a stripe that somebody has,
//     the rest of it is applied outside. Another batch fills meanwhile, which is not
//     applied before.
//   - An origin buffer is not held: its element is copied.

const (
	// mostHeld is a batch, a power of two: more fetches than a processor has in
	// flight would gain nothing.
	mostHeld = 16
	// farBytes is the size of a window from which on its elements are taken to
	// be out of the second-level cache.
	farBytes = 1 << 20
)

// heldBack is what a rank holds back on a window. The latch guards it; state may be
// read without.
type heldBack struct {
	latch latch.Latch
	// state is how many updates the batch has that fills, and busy while the other
	// is applied outside of the latch: 0 means that all that was issued has been applied.
	state atomic.Uint32
	// another tells that an accumulate was issued since the last settle: the
	// first is applied at once, because it may remain the only one. It decides
	// nothing else, so goroutines may set it as they come.
	another atomic.Uint32
	// updates are two batches. The one that fills begins at first; the other belongs
	// to who made state busy.
	first   uint32
	updates [2 * mostHeld]update
}

const busy = 1 << 31

// alone tells whether an accumulate is the first since the last settle. Where it is,
// nothing is held that this goroutine would have to come after.
func (h *heldBack) alone() bool {
	if h.another.Load() != 0 {
		return false
	}
	latch.Release(&h.another, 1)
	return h.state.Load() == 0
}

// settle applies what is held.
func (c *core) settle() {
	if c.held.another.Load() != 0 {
		latch.Release(&c.held.another, 0)
	}
	if c.held.state.Load() != 0 {
		c.applyHeld()
	}
}

// settleClosed is settle after an epoch was closed, when it has to see what another
// goroutine is about to hold: that state is 0 proves nothing.
func (c *core) settleClosed() {
	if c.far {
		latch.Release(&c.held.another, 0)
		c.applyHeld()
	}
}

// applyHeld applies what is held, or waits until another goroutine has. Of a window
// that is closed it is dropped.
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

// applyBatch applies the n updates that fill their batch. It is called with the
// latch, nothing being applied. Where it comes to a stripe that somebody has, it gives
// the latch up until it has applied the rest, and the other batch fills meanwhile.
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

// makeRoom returns when the batch that fills is not full, with the state. It is called
// with the latch, which it gives up meanwhile.
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
