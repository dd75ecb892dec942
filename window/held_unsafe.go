package window

import (
	"sync/atomic"
	"unsafe"

	"github.com/onesided/rma/aggregate/reduce"
	"github.com/onesided/rma/epoch/latch"
)

// An update is an accumulate of one element: under the lock of its stripe by apply,
// or by atomic instructions.
type update struct {
	to     unsafe.Pointer
	stripe *atomic.Uint32
	apply  reduce.Func
	atomic reduce.AtomicFunc
	value  [2]uint64
}

// hold takes the place of an update of the element at to, part of target's window. It
// tells whether it does: not when the epoch has been closed meanwhile. A full batch is
// applied first. Sound because to is in window memory, which stays mapped while an
// epoch is open, and origin is an element of the view's kind.
func (v *view) hold(target int, to unsafe.Pointer, stripe *atomic.Uint32, apply reduce.Func, native reduce.AtomicFunc, origin unsafe.Pointer) bool {
	h := &v.held
	h.latch.Lock()
	for {
		if !v.epochs.Open(target) {
			h.latch.Unlock()
			return false
		}
		n := h.state.Load()
		if n&^busy < mostHeld {
			u := &h.batches[h.filling&1][n%mostHeld]
			u.to, u.stripe, u.apply, u.atomic = to, stripe, apply, native
			copyElement(unsafe.Pointer(&u.value), origin, v.shift)
			prefetch(to)
			latch.Release(&h.state, n+1)
			h.latch.Unlock()
			return true
		}
		if n&busy == 0 {
			v.applyBatch(n)
			continue
		}
		h.latch.Unlock()
		v.applyHeld()
		h.latch.Lock()
	}
}

// applyUpdate applies an update.
func (c *core) applyUpdate(u *update) {
	value := unescaped(unsafe.Pointer(&u.value))
	if u.atomic != nil {
		u.atomic(u.to, value, nil)
		return
	}
	if !u.stripe.CompareAndSwap(0, c.lockWord) {
		c.waitStripe(u.stripe)
	}
	u.apply(u.to, value, 1)
	latch.Release(u.stripe, 0)
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
