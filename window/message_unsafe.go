package window

import (
	"math/bits"
	"unsafe"

	"github.com/onesided/rma/aggregate/reduce"
)

// viewOf is this rank's part as elements of kind, for what messages ask of it.
func viewOf(c *core, kind reduce.Kind) *view {
	return &view{core: c, kind: kind, shift: uint8(bits.TrailingZeros(uint(kind.Size()))), kernels: kernelsFor(kind)}
}

// at is the address of memory that is not kept, nil if there is none.
func at(memory []byte) unsafe.Pointer {
	if len(memory) == 0 {
		return nil
	}
	return unsafe.Pointer(unsafe.SliceData(memory))
}

// apply applies an accumulate to elements of this rank's part, at offset, until it comes
// to a stripe that is not free, and tells how many bytes of them it has done. Sound
// because memory is whole, aligned elements of the view's kind, operands and old are
// as long or empty, and are on 8-byte boundaries: a payload is 32 bytes into a
// letter, and what is done whole elements, of which those larger than a word are words.
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
