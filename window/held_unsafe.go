package window

import (
	"sync/atomic"
	"unsafe"

	"github.com/onesided/rma/aggregate/reduce"
	"github.com/onesided/rma/internal/latch"
	"github.com/onesided/rma/internal/prefetch"
)

// An update is an accumulate of one element. It is applied by apply under the lock of its stripe, or by atomic
// instructions.
type update struct {
	to     unsafe.Pointer
	stripe *atomic.Uint32
	apply  reduce.Func
	atomic reduce.AtomicFunc
	value  [2]uint64
}

// hold holds an update of the element at to, part of target's window. It returns false if the epoch has been closed
// meanwhile. A full batch is applied first. Sound because to is in window memory, which stays mapped while an epoch is
// open, and origin is an element of the view's kind.
func (v *view) hold(target int, to unsafe.Pointer, stripe *atomic.Uint32, apply reduce.Func, native reduce.AtomicFunc, origin unsafe.Pointer) bool {
	h := &v.held
	h.latch.Lock()
	n := h.state.Load()
	if n&mostHeld != 0 {
		n = v.makeRoom()
	}
	if !v.epochs.Open(target) {
		h.latch.Unlock()
		return false
	}
	u := &h.updates[(h.first+n)%(2*mostHeld)]
	u.to, u.stripe, u.apply, u.atomic = to, stripe, apply, native
	copyElement(unsafe.Pointer(&u.value), origin, v.shift)
	prefetch.Write(to)
	latch.Release(&h.state, n+1)
	h.latch.Unlock()
	return true
}

// applyFree applies updates until one needs a stripe that is taken. It returns the number applied.
func (c *core) applyFree(updates []update) int {
	for i := range updates {
		u := &updates[i]
		if u.atomic != nil {
			u.atomic(u.to, unsafe.Pointer(&u.value), nil)
			continue
		}
		if !u.stripe.CompareAndSwap(0, c.lockWord) {
			return i
		}
		c.tookStripe()
		u.apply(u.to, unsafe.Pointer(&u.value), 1)
		c.giveStripe(u.stripe)
	}
	return len(updates)
}

// applyWaiting applies an update. It waits for its stripe.
func (c *core) applyWaiting(u *update) {
	c.lockStripe(u.stripe)
	u.apply(u.to, unsafe.Pointer(&u.value), 1)
	c.giveStripe(u.stripe)
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
