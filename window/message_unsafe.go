package window

import (
	"math/bits"
	"unsafe"

	"github.com/onesided/rma/aggregate/reduce"
)

// viewOf returns this rank's part as elements of kind, for the operations of messages.
func viewOf(c *core, kind reduce.Kind) *view {
	return &view{core: c, kind: kind, shift: uint8(bits.TrailingZeros(uint(kind.Size()))), kernels: kernelsFor(kind)}
}

// at returns the address of memory, which the caller does not keep, or nil if there is none.
func at(memory []byte) unsafe.Pointer {
	if len(memory) == 0 {
		return nil
	}
	return unsafe.Pointer(unsafe.SliceData(memory))
}

// apply applies an accumulate to elements of this rank's part, at offset, until it comes to a stripe that is not free.
// It returns the number of bytes done.
//
// Sound because memory is whole, aligned elements of the view's kind. Operands and old are empty or as long as memory,
// and start on 8-byte boundaries: a payload starts at a multiple of 8 bytes of a message. The bytes done are whole
// elements, and those of elements larger than a word are whole words.
func (v *view) apply(op Op, memory, values, old []byte, offset uint64) (done int) {
	o := operands{origin: at(values), result: at(old), count: len(memory) >> v.shift}
	if v.native && v.kernels.atomic[op] != nil {
		v.combine(v.own, op, at(memory), o, offset)
		return len(memory)
	}
	for done < len(memory) {
		n := min(o.count, v.untilStripeEnd(v.own, offset+uint64(done)))
		stripe := v.own.control.stripe(offset + uint64(done))
		if !v.tryStripe(stripe) {
			return done
		}
		v.combineStripe(op, at(memory[done:]), o, n)
		v.giveStripe(stripe)
		o.advance(n, v.shift)
		done += n << v.shift
	}
	return done
}

// combineEach applies the accumulates or fetches of a run of single elements, starting with next. It stops at one that
// is rejected, or that needs a stripe which another rank has. It reports whether it came to the end. Sound because it
// checks every element as one does.
func (c *carrying) combineEach() bool {
	run, v := &c.run, c.server.viewFor(c.run.Element)
	data, size := c.server.core.own.data, uint64(c.run.Size)
	if uint64(len(data)) < size || alignmentOf(data) < min(c.run.Size, 8) {
		return false
	}
	base, last := unsafe.Pointer(unsafe.SliceData(data)), uint64(len(data))-size
	apply, fetch, control := v.kernels.apply[run.Op], v.kernels.fetch[run.Op], &v.own.control
	native := v.kernels.atomic[run.Op]
	if !v.native {
		native = nil
	}
	answer := run.Response()
	for ; c.next < run.Count; c.next++ {
		c.fetchAhead()
		offset, operand := run.Operation(c.next)
		if offset > last || offset&(size-1) != 0 {
			return false
		}
		to := unsafe.Add(base, offset)
		if native != nil {
			native(to, at(operand), at(c.place(answer)))
			continue
		}
		stripe := control.stripe(offset)
		if stripe.CompareAndSwap(0, v.lockWord) {
			v.tookStripe()
		} else if !v.tryStripe(stripe) {
			return false
		}
		if answer == 0 {
			apply(to, at(operand), 1)
		} else {
			fetch(to, at(operand), at(c.place(answer)), 1)
		}
		v.giveStripe(stripe)
	}
	return true
}

// swapServed is CompareAndSwap of an element of this rank's part, if its stripe is free.
func (v *view) swapServed(memory, compare, swap, old []byte, offset uint64) (done bool) {
	if v.native && v.kernels.swap != nil {
		v.kernels.swap(at(memory), at(compare), at(swap), at(old))
		return true
	}
	stripe := v.own.control.stripe(offset)
	if !v.tryStripe(stripe) {
		return false
	}
	v.swapElement(at(memory), at(compare), at(swap), at(old))
	v.giveStripe(stripe)
	return true
}
