package window

import (
	"sync/atomic"
	"unsafe"

	"github.com/onesided/rma/aggregate/reduce"
	"github.com/onesided/rma/epoch/latch"
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
//     closing which will apply it first: every call after which an accumulate has
//     to be complete at the target begins with settle.
//   - Accumulates of this rank are applied in program order: what is held, in its
//     order, before any operation of the family that is not held.
//   - An origin buffer is not held: its element is copied.

const (
	// mostHeld is a batch: more fetches than a processor has in flight would
	// gain nothing.
	mostHeld = 16
	// farBytes is the size of a window from which on its elements are taken to
	// be out of the second-level cache.
	farBytes = 1 << 20
)

// heldBack is the batch of a rank on a window. The latch guards the batch; count may
// be read without it.
type heldBack struct {
	latch latch.Latch
	count atomic.Uint32
	// another tells that an accumulate was issued since the last settle: the
	// first is applied at once, because it may remain the only one. It decides
	// nothing else, so goroutines may set it as they come.
	another atomic.Uint32
	updates [mostHeld]update
}

// An update is an accumulate of one element: under the lock of its stripe by apply,
// or by atomic instructions.
type update struct {
	to     unsafe.Pointer
	stripe *atomic.Uint32
	apply  reduce.Func
	atomic reduce.AtomicFunc
	value  [2]uint64
}

// hold takes the place of an update of the element at to. The batch is applied first
// if it is full. Sound because to is in window memory, which stays mapped while an
// epoch is open, and origin is an element of the view's kind.
func (v *view) hold(to unsafe.Pointer, stripe *atomic.Uint32, apply reduce.Func, native reduce.AtomicFunc, origin unsafe.Pointer) {
	h := &v.held
	h.latch.Lock()
	n := h.count.Load()
	if n == mostHeld {
		v.applyHeld()
		n = 0
	}
	u := &h.updates[n%mostHeld]
	u.to, u.stripe, u.apply, u.atomic = to, stripe, apply, native
	copyElement(unsafe.Pointer(&u.value), origin, v.shift)
	prefetch(to)
	latch.Release(&h.count, n+1)
	h.latch.Unlock()
}

// alone tells whether an accumulate is the first since the last settle. Where it is,
// nothing is held that this goroutine would have to come after.
func (h *heldBack) alone() bool {
	if h.another.Load() != 0 {
		return false
	}
	latch.Release(&h.another, 1)
	return h.count.Load() == 0
}

// settle applies what is held.
func (c *core) settle() {
	if c.held.another.Load() != 0 {
		latch.Release(&c.held.another, 0)
	}
	if c.held.count.Load() != 0 {
		c.held.latch.Lock()
		c.applyHeld()
		c.held.latch.Unlock()
	}
}

// applyHeld applies what is held, for the holder of the latch.
func (c *core) applyHeld() {
	h := &c.held
	for i := range h.count.Load() {
		u := &h.updates[i%mostHeld]
		value := unescaped(unsafe.Pointer(&u.value))
		if u.atomic != nil {
			u.atomic(u.to, value, nil)
			continue
		}
		if !u.stripe.CompareAndSwap(0, c.lockWord) {
			c.waitStripe(u.stripe)
		}
		u.apply(u.to, value, 1)
		latch.Release(u.stripe, 0)
	}
	latch.Release(&h.count, 0)
}

// copyElement copies an element of 1 << shift bytes.
func copyElement(to, from unsafe.Pointer, shift uint8) {
	switch shift {
	case 0:
		*(*uint8)(to) = *(*uint8)(from)
	case 1:
		*(*uint16)(to) = *(*uint16)(from)
	case 2:
		*(*uint32)(to) = *(*uint32)(from)
	case 3:
		*(*uint64)(to) = *(*uint64)(from)
	default:
		*(*[2]uint64)(to) = *(*[2]uint64)(from)
	}
}
