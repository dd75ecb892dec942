package window

import (
	"math/bits"
	"unsafe"

	"github.com/onesided/rma/aggregate/reduce"
	"github.com/onesided/rma/world"
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

// accumulateRemote has an accumulate applied by its target. The operands are sent, so
// they are the program's again; results are kept until they have come.
func (v *view) accumulateRemote(p *peer, op Op, o operands, offset uint64) error {
	most := p.link.MaxPayload() >> v.shift
	for o.count > 0 {
		n := min(o.count, most)
		m := world.Message{Kind: messageAccumulate, Service: v.number, A: uint8(op), B: uint8(v.kind), X: offset}
		var payload []byte
		if o.origin != nil && op != NoOp {
			payload = memoryAt(o.origin, n<<v.shift)
		}
		var err error
		switch {
		case o.result != nil:
			m.Kind, m.Y = messageFetch, uint64(n)
			err = p.link.Ask(&m, payload, memoryAt(o.result, n<<v.shift))
		case op != NoOp:
			err = p.link.Tell(&m, payload)
		}
		if err != nil {
			return err
		}
		o.advance(n, v.shift)
		offset += uint64(n) << v.shift
	}
	return nil
}

// swapRemote has a CompareAndSwap done by its target.
func (v *view) swapRemote(p *peer, compare, swap, result unsafe.Pointer, offset uint64) error {
	size := 1 << v.shift
	var payload [32]byte
	copy(payload[:size], memoryAt(compare, size))
	copy(payload[size:], memoryAt(swap, size))
	m := world.Message{Kind: messageSwap, Service: v.number, B: uint8(v.kind), X: offset}
	return p.link.Ask(&m, payload[:2*size], memoryAt(result, size))
}
