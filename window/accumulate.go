package window

import (
	"fmt"

	"github.com/onesided/rma/aggregate/reduce"
)

// Accumulate combines origin into target's window from displacement on, element by
// element: window = op(window, origin). Each element is atomic with respect to
// every other operation of the accumulate family on the window, whichever rank
// it comes from. Accumulates from one origin to one location take effect in
// program order.
func (w *Window[T]) Accumulate(op Op, origin []T, target, displacement int) error {
	if uint(target) < uint(len(w.targets)) && len(origin) == 1 && int(op) < len(w.kernels.apply) && !w.guarded {
		t := &w.targets[target]
		if memory := t.memory.Load(); memory != nil && uint(displacement) < uint(t.count) && w.epochs.Open(target) {
			if apply := w.kernels.apply[op]; apply != nil {
				stripe := t.stripes.at(uint64(displacement) * uint64(sizeOf[T]()))
				if !stripe.CompareAndSwap(0, w.lockWord) {
					w.waitStripe(stripe)
				}
				applyOne(apply, at(memory, displacement), &origin[0])
				stripe.Store(0)
				return nil
			}
		}
	}
	return w.accumulate("Accumulate", op, origin, nil, target, displacement, len(origin))
}

// GetAccumulate is Accumulate that also reads into result what each element was
// before. result is as long as origin; with NoOp, origin may be nil, which makes
// it an atomic Get.
func (w *Window[T]) GetAccumulate(op Op, origin, result []T, target, displacement int) error {
	if len(origin) != len(result) && (op != NoOp || len(origin) != 0) {
		return fmt.Errorf("window: GetAccumulate: %w: origin has %d elements, result %d", ErrArgument, len(origin), len(result))
	}
	return w.accumulate("GetAccumulate", op, origin, result, target, displacement, len(result))
}

// FetchAndOp is GetAccumulate of one element.
func (w *Window[T]) FetchAndOp(op Op, operand T, result *T, target, displacement int) error {
	if result == nil {
		return fmt.Errorf("window: FetchAndOp: %w: nil result", ErrArgument)
	}
	if to, ok := w.mapped(target, displacement, 1); ok && w.allowed(op, 1) {
		w.fetchOne(op, to, operand, result, target, displacement)
		return nil
	}
	return w.accumulate("FetchAndOp", op, one(&operand), one(result), target, displacement, 1)
}

// CompareAndSwap sets one element of target's window to swap if it equals compare,
// bit for bit, and reads into result what it was before.
func (w *Window[T]) CompareAndSwap(compare, swap T, result *T, target, displacement int) error {
	if result == nil {
		return fmt.Errorf("window: CompareAndSwap: %w: nil result", ErrArgument)
	}
	if to, ok := w.mapped(target, displacement, 1); ok {
		w.swapOne(to, compare, swap, result, target, displacement)
		return nil
	}
	p, err := w.reach("CompareAndSwap", target, displacement, 1)
	if err != nil {
		return err
	}
	if to, ok := w.mapped(target, displacement, 1); ok {
		w.swapOne(to, compare, swap, result, target, displacement)
		return nil
	}
	stripe := p.control.stripe(w.offset(displacement))
	w.lockStripe(stripe)
	defer stripe.Store(0)
	if err := p.neighbor.ReadAt(bytesOf(one(result)), p.region, w.offset(displacement)); err != nil {
		return w.failed("CompareAndSwap", target, displacement, 1, err)
	}
	if !sameBits(*result, compare) {
		return nil
	}
	if err := p.neighbor.WriteAt(bytesOf(one(&swap)), p.region, w.offset(displacement)); err != nil {
		return w.failed("CompareAndSwap", target, displacement, 1, err)
	}
	return nil
}

// accumulate is the way of an accumulate that did not pass the short check.
func (w *Window[T]) accumulate(call string, op Op, origin, result []T, target, displacement, count int) error {
	if to, ok := w.mapped(target, displacement, count); ok && w.allowed(op, count) {
		w.combine(op, to, origin, result, target, displacement)
		return nil
	}
	p, err := w.reach(call, target, displacement, count)
	if err != nil {
		return err
	}
	if err := w.refuseOp(op, count); err != nil {
		return &OpError{Op: call, Target: target, Displacement: displacement, Count: count, Cause: err}
	}
	if to, ok := w.mapped(target, displacement, count); ok {
		w.combine(op, to, origin, result, target, displacement)
		return nil
	}
	return w.accumulateUnmapped(p, call, op, origin, result, target, displacement, count)
}

// accumulateUnmapped applies an accumulate to memory that this process can read
// and write but not map: the elements of a stripe are fetched, combined here and
// written back under the stripe's lock, as everyone takes it for this window.
func (w *Window[T]) accumulateUnmapped(p *peer, call string, op Op, origin, result []T, target, displacement, count int) error {
	for done := 0; done < count; {
		offset := w.offset(displacement + done)
		n := min(count-done, w.untilStripeEnd(p, offset))
		old := make([]T, n)
		if err := w.exchange(p, op, rest(origin, done, n), old, offset); err != nil {
			return w.failed(call, target, displacement, count, err)
		}
		if result != nil {
			copy(result[done:], old)
		}
		done += n
	}
	return nil
}

// exchange fetches len(old) elements at offset into old and replaces them by their
// combination with origin, under the stripe's lock.
func (w *Window[T]) exchange(p *peer, op Op, origin, old []T, offset uint64) error {
	stripe := p.control.stripe(offset)
	w.lockStripe(stripe)
	defer stripe.Store(0)
	if err := p.neighbor.ReadAt(bytesOf(old), p.region, offset); err != nil {
		return err
	}
	if op == NoOp {
		return nil
	}
	combined := append([]T(nil), old...)
	w.apply(op, combined, origin)
	return p.neighbor.WriteAt(bytesOf(combined), p.region, offset)
}

// rest is n elements of origin from done on, nil of nil.
func rest[T Element](origin []T, done, n int) []T {
	if len(origin) == 0 {
		return nil
	}
	return origin[done : done+n]
}

// allowed tells whether an accumulate of count elements passes without further
// questions.
func (w *Window[T]) allowed(op Op, count int) bool {
	return int(op) < len(w.kernels.apply) && w.kernels.apply[op] != nil && !w.promises(count)
}

// promises tells whether an option given at creation needs a closer look.
func (c *core) promises(count int) bool {
	return c.hints.sameOp || c.hints.singleElement && count != 1
}

// refuseOp says why an accumulate is refused, nil if it is not. It settles the
// operation of a window made with SameOp.
func (w *Window[T]) refuseOp(op Op, count int) error {
	if err := reduce.Supported(w.kind, op); err != nil {
		return err
	}
	if w.hints.singleElement && count > 1 {
		return fmt.Errorf("%w: the window was made with SingleElement, this has %d elements", ErrHint, count)
	}
	if w.hints.sameOp && op != NoOp && !w.chosenOp.CompareAndSwap(0, uint32(op)+1) {
		if chosen := Op(w.chosenOp.Load() - 1); chosen != op {
			return fmt.Errorf("%w: the window was made with SameOp and its operation is %v, this is %v", ErrHint, chosen, op)
		}
	}
	return nil
}
