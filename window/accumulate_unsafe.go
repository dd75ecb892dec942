package window

import (
	"unsafe"

	"github.com/onesided/rma/aggregate"
	"github.com/onesided/rma/aggregate/reduce"
)

// kernels are the functions that apply operations to elements of one kind. A function is nil if the kind does not have
// the operation.
type kernels struct {
	apply  [reduce.NoOp + 1]reduce.Func
	fetch  [reduce.NoOp + 1]reduce.FetchFunc
	atomic [reduce.NoOp + 1]reduce.AtomicFunc
	swap   reduce.AtomicSwapFunc
	// swaps is set if the view has CompareAndSwap on its fast path. swap is needed only with atomic instructions.
	swaps bool
}

func kernelsFor(kind reduce.Kind) *kernels {
	k := new(kernels)
	for op := Op(0); int(op) < len(k.apply); op++ {
		if reduce.Supported(kind, op) != nil {
			continue
		}
		k.apply[op], _ = reduce.Lookup(kind, op)
		k.fetch[op], _ = reduce.LookupFetch(kind, op)
		k.atomic[op], _ = reduce.LookupAtomic(kind, op)
	}
	k.swap, _ = reduce.LookupAtomicSwap(kind)
	k.swaps = true
	return k
}

// operands are the program's side of an accumulate, of count elements each. origin may be nil with NoOp only. result is
// nil if the operation returns no old values. Sound because both are the memory of slices of count elements: see
// address.
type operands struct {
	origin, result unsafe.Pointer
	count          int
}

// advance skips n elements of the operands.
func (o *operands) advance(n int, shift uint8) {
	if o.count -= n; o.count == 0 {
		return
	}
	if o.origin != nil {
		o.origin = unsafe.Add(o.origin, n<<shift)
	}
	if o.result != nil {
		o.result = unsafe.Add(o.result, n<<shift)
	}
}

func (v *view) accumulate(op Op, origin unsafe.Pointer, count, target, displacement int) error {
	if uint(target) < uint(len(v.targets)) && count == 1 && int(op) < len(v.kernels.apply) && v.chosen(op) {
		t := &v.targets[target]
		memory := t.memory.Load()
		switch {
		case memory == nil:
			if d := t.queue.Load(); d != nil && v.shift <= 3 && op != NoOp && v.kernels.apply[op] != nil && uint(displacement) < uint(t.count) && v.epochs.Open(target) {
				err := d.accumulate(op, v.kind, 1<<(v.shift&7), uint64(displacement)<<(v.shift&7), wordOf(origin, v.shift))
				if err != nil {
					err = v.failed("Accumulate", target, displacement, count, err)
				}
				return err
			}
		case uint(displacement) < uint(t.count) && v.epochs.Open(target):
			if apply := v.kernels.apply[op]; apply != nil {
				offset := displacement << (v.shift & 7)
				to := unsafe.Add(unsafe.Pointer(memory), offset)
				stripe := t.stripes.at(uint64(offset))
				var native reduce.AtomicFunc
				if v.native {
					native = v.kernels.atomic[op]
				}
				switch {
				case t.stripes.far && !v.held.alone():
					if !v.hold(target, to, stripe, apply, native, origin) {
						return v.accumulateAny("Accumulate", op, operands{origin: origin, count: count}, target, displacement)
					}
				case native != nil:
					native(to, origin, nil)
				default:
					if !stripe.CompareAndSwap(0, v.lockWord) {
						v.waitStripe(stripe)
					}
					v.tookStripe()
					apply(to, origin, 1)
					v.giveStripe(stripe)
				}
				return nil
			}
		}
	}
	return v.accumulateAny("Accumulate", op, operands{origin: origin, count: count}, target, displacement)
}

// accumulateAny is the slow path of an accumulate, for calls that fail the checks of the fast path.
func (v *view) accumulateAny(call string, op Op, o operands, target, displacement int) error {
	if v.core == nil {
		return unmade(call)
	}
	if v.watch == nil {
		return v.doAccumulate(call, op, o, target, displacement)
	}
	i := issue{call: call, kind: aggregate.Accumulate, op: op, result: o.result, count: o.count, target: target, displacement: displacement}
	if o.result != nil {
		i.kind = aggregate.Fetch
	}
	return v.watched(&i, func() error { return v.doAccumulate(call, op, o, target, displacement) })
}

func (v *view) doAccumulate(call string, op Op, o operands, target, displacement int) error {
	p, err := v.reach(call, target, displacement, o.count)
	if err != nil {
		return err
	}
	if err := v.refuseOp(op, o.count); err != nil {
		return &OpError{Op: call, Target: target, Displacement: displacement, Count: o.count, Cause: err}
	}
	if o.count == 0 {
		return nil
	}
	if p.data != nil {
		// Deferred accumulates on mapped memory come first: they may be to these elements.
		v.settle()
	}
	if p, err = v.through(p, target); err != nil {
		return v.failed(call, target, displacement, o.count, err)
	}
	if to, ok := v.mapped(target, displacement); ok && v.cards != cardsAlone {
		v.combine(p, op, to, o, v.offset(displacement))
		return nil
	}
	count := o.count
	if p.link != nil {
		if err := v.accumulateRemote(p, op, o, v.offset(displacement)); err != nil {
			return v.failed(call, target, displacement, count, err)
		}
		return nil
	}
	if err := v.exchange(p, op, o, v.offset(displacement)); err != nil {
		return v.failed(call, target, displacement, count, err)
	}
	return nil
}

// combine applies an accumulate to mapped window memory. to is the address of the element at offset.
func (v *view) combine(p *peer, op Op, to unsafe.Pointer, o operands, offset uint64) {
	if v.native && v.kernels.atomic[op] != nil {
		for o.count > 0 {
			v.kernels.atomic[op](to, o.origin, o.result)
			if o.advance(1, v.shift); o.count > 0 {
				to = unsafe.Add(to, 1<<v.shift)
			}
		}
		return
	}
	for {
		n := min(o.count, v.untilStripeEnd(p, offset))
		if n == 0 {
			return
		}
		stripe := p.control.stripe(offset)
		v.lockStripe(stripe)
		v.combineStripe(op, to, o, n)
		v.giveStripe(stripe)
		if n == o.count {
			return
		}
		o.advance(n, v.shift)
		to = unsafe.Add(to, n<<v.shift)
		offset += uint64(n) << v.shift
	}
}

// combineStripe applies an accumulate to n elements of one stripe. The caller holds the lock of the stripe.
func (v *view) combineStripe(op Op, to unsafe.Pointer, o operands, n int) {
	if o.result == nil {
		v.kernels.apply[op](to, o.origin, n)
	} else {
		v.kernels.fetch[op](to, o.origin, o.result, n)
	}
}

// exchange applies an accumulate to memory that this process can read and write by system calls, but not map. Under the
// lock of each stripe it reads the elements, combines them here and writes them back. All ranks take these locks for
// this window.
func (v *view) exchange(p *peer, op Op, o operands, offset uint64) error {
	var old, combined []byte
	for o.count > 0 {
		n := min(o.count, v.untilStripeEnd(p, offset))
		old, combined = resized(old, n<<v.shift), resized(combined, n<<v.shift)
		err := v.exchangeStripe(p, op, o.origin, old, combined, offset)
		if err != nil {
			return err
		}
		if o.result != nil {
			copy(memoryAt(o.result, len(old)), old)
		}
		o.advance(n, v.shift)
		offset += uint64(len(old))
	}
	return nil
}

// resized returns b with n bytes, or new memory if b is too short. The memory is on an 8-byte boundary.
func resized(b []byte, n int) []byte {
	if cap(b) >= n {
		return b[:n]
	}
	return bytesOf(make([]uint64, (n+7)/8))[:n]
}

func (v *view) exchangeStripe(p *peer, op Op, origin unsafe.Pointer, old, combined []byte, offset uint64) error {
	stripe := p.control.stripe(offset)
	v.lockStripe(stripe)
	defer v.giveStripe(stripe)
	if err := p.neighbor.ReadAt(old, p.region, offset); err != nil || op == NoOp {
		return err
	}
	copy(combined, old)
	v.kernels.apply[op](address(combined), origin, len(combined)>>v.shift)
	return p.neighbor.WriteAt(combined, p.region, offset)
}

// fetchAndOp is an accumulate of one element that returns its old value.
func (v *view) fetchAndOp(op Op, operand, result unsafe.Pointer, target, displacement int) error {
	if uint(target) < uint(len(v.targets)) && int(op) < len(v.kernels.apply) && v.chosen(op) {
		t := &v.targets[target]
		if memory := t.memory.Load(); memory != nil && uint(displacement) < uint(t.count) && v.epochs.Open(target) {
			offset := displacement << (v.shift & 7)
			to := unsafe.Add(unsafe.Pointer(memory), offset)
			v.settle()
			if apply := v.kernels.atomic[op]; v.native && apply != nil {
				apply(to, operand, result)
				return nil
			}
			if apply := v.kernels.fetch[op]; apply != nil {
				stripe := t.stripes.at(uint64(offset))
				if !stripe.CompareAndSwap(0, v.lockWord) {
					v.waitStripe(stripe)
				}
				v.tookStripe()
				apply(to, operand, result, 1)
				v.giveStripe(stripe)
				return nil
			}
		}
	}
	return v.accumulateAny("FetchAndOp", op, operands{origin: operand, result: result, count: 1}, target, displacement)
}

func (v *view) compareAndSwap(compare, swap, result unsafe.Pointer, target, displacement int) error {
	if uint(target) < uint(len(v.targets)) {
		t := &v.targets[target]
		if memory := t.memory.Load(); memory != nil && uint(displacement) < uint(t.count) && v.epochs.Open(target) && v.kernels.swaps {
			v.swapMapped(t, memory, displacement, compare, swap, result)
			return nil
		}
	}
	if v.core == nil {
		return unmade("CompareAndSwap")
	}
	if v.watch == nil {
		return v.doSwap(compare, swap, result, target, displacement)
	}
	i := issue{call: "CompareAndSwap", kind: aggregate.Swap, result: result, count: 1, target: target, displacement: displacement}
	return v.watched(&i, func() error { return v.doSwap(compare, swap, result, target, displacement) })
}

// swapMapped is a compare-and-swap in mapped memory.
func (v *view) swapMapped(t *target, memory *byte, displacement int, compare, swap, result unsafe.Pointer) {
	offset := displacement << (v.shift & 7)
	to := unsafe.Add(unsafe.Pointer(memory), offset)
	v.settle()
	if v.native && v.kernels.swap != nil {
		v.kernels.swap(to, compare, swap, result)
		return
	}
	stripe := t.stripes.at(uint64(offset))
	if !stripe.CompareAndSwap(0, v.lockWord) {
		v.waitStripe(stripe)
	}
	v.tookStripe()
	v.swapElement(to, compare, swap, result)
	v.giveStripe(stripe)
}

// doSwap is the slow path of a compare-and-swap, for calls that fail the checks of the fast path.
func (v *view) doSwap(compare, swap, result unsafe.Pointer, target, displacement int) error {
	p, err := v.reach("CompareAndSwap", target, displacement, 1)
	if err == nil && v.hints.ReadOnly {
		err = &OpError{Op: "CompareAndSwap", Target: target, Displacement: displacement, Count: 1, Cause: ErrReadOnly}
	}
	if err != nil {
		return err
	}
	if v.hints.CardAtomics {
		if err := refuseKind(v.kind); err != nil {
			return &OpError{Op: "CompareAndSwap", Target: target, Displacement: displacement, Count: 1, Cause: err}
		}
	}
	if p, err = v.through(p, target); err != nil {
		return v.failed("CompareAndSwap", target, displacement, 1, err)
	}
	if t := &v.targets[target]; v.cards != cardsAlone {
		if memory := t.data.Load(); memory != nil {
			v.swapMapped(t, memory, displacement, compare, swap, result)
			return nil
		}
	}
	if p.link != nil {
		if err := v.swapRemote(p, compare, swap, result, v.offset(displacement)); err != nil {
			return v.failed("CompareAndSwap", target, displacement, 1, err)
		}
		return nil
	}
	if err := v.swapUnmapped(p, compare, swap, result, v.offset(displacement)); err != nil {
		return v.failed("CompareAndSwap", target, displacement, 1, err)
	}
	return nil
}

// swapElement compares and swaps elements as bits: a NaN equals itself, and 0 differs from -0. The caller holds the
// lock of the element's stripe.
func (v *view) swapElement(to, compare, swap, result unsafe.Pointer) {
	switch v.shift {
	case 0:
		swapAs[uint8](to, compare, swap, result)
	case 1:
		swapAs[uint16](to, compare, swap, result)
	case 2:
		swapAs[uint32](to, compare, swap, result)
	case 3:
		swapAs[uint64](to, compare, swap, result)
	default:
		swapAs[[2]uint64](to, compare, swap, result)
	}
}

func swapAs[E comparable](to, compare, swap, result unsafe.Pointer) {
	old := *(*E)(to)
	if old == *(*E)(compare) {
		*(*E)(to) = *(*E)(swap)
	}
	*(*E)(result) = old
}

// swapUnmapped is CompareAndSwap on memory that this process cannot map.
func (v *view) swapUnmapped(p *peer, compare, swap, result unsafe.Pointer, offset uint64) error {
	element := bytesOf(make([]uint64, 2))[:1<<v.shift]
	stripe := p.control.stripe(offset)
	v.lockStripe(stripe)
	defer v.giveStripe(stripe)
	if err := p.neighbor.ReadAt(element, p.region, offset); err != nil {
		return err
	}
	v.swapElement(address(element), compare, swap, result)
	return p.neighbor.WriteAt(element, p.region, offset)
}
