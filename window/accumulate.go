package window

import (
	"fmt"

	"github.com/onesided/rma/aggregate/reduce"
	"github.com/onesided/rma/internal/errtext"
)

// Accumulate combines origin into target's window from displacement on, element by
// element: window = op(window, origin). Each element is atomic with respect to
// every other operation of the accumulate family on the window, whichever rank
// it comes from. Accumulates from one origin to one location take effect in
// program order.
func (w *Window[T]) Accumulate(op Op, origin []T, target, displacement int) error {
	return w.view.accumulate(op, address(origin), len(origin), target, displacement)
}

// GetAccumulate is Accumulate that also reads into result what each element was
// before. result is as long as origin; with NoOp, origin may be nil, which makes
// it an atomic Get. As that of Get, the result is valid when the epoch, flush or request that completes the operation
// has returned.
func (w *Window[T]) GetAccumulate(op Op, origin, result []T, target, displacement int) error {
	if len(origin) != len(result) && (op != NoOp || len(origin) != 0) {
		return fmt.Errorf("window: GetAccumulate: %w: origin has %s, result %d; they must have as many", ErrArgument, errtext.Count(len(origin), "element"), len(result))
	}
	return w.view.accumulateAny("GetAccumulate", op, operands{origin: address(origin), result: kept(result), count: len(result)}, target, displacement)
}

// FetchAndOp is GetAccumulate of one element: *result becomes what the element was before op changed it. That is valid
// when the epoch or flush that completes the operation has returned. Under a lock [Window.FlushLocal] is enough.
func (w *Window[T]) FetchAndOp(op Op, operand T, result *T, target, displacement int) error {
	if result == nil {
		return fmt.Errorf("window: FetchAndOp: %w: nil result", ErrArgument)
	}
	return w.view.fetchAndOp(op, addressOf(&operand), keptElement(result), target, displacement)
}

// CompareAndSwap sets one element of target's window to swap if it equals compare,
// bit for bit, and reads into result what it was before.
func (w *Window[T]) CompareAndSwap(compare, swap T, result *T, target, displacement int) error {
	if result == nil {
		return fmt.Errorf("window: CompareAndSwap: %w: nil result", ErrArgument)
	}
	return w.view.compareAndSwap(addressOf(&compare), addressOf(&swap), keptElement(result), target, displacement)
}

// chosen tells whether a window made with SameOp has settled on an operation, and others allow every one.
func (v *view) chosen(op Op) bool { return !v.hints.sameOp || v.chosenOp.Load() == uint32(op)+1 }

// refuseOp says why an accumulate is refused, nil if it is not. It settles the
// operation of a window made with SameOp.
func (v *view) refuseOp(op Op, count int) error {
	if err := v.refuseAny(op, count); err != nil || !v.hints.sameOp || op == NoOp || v.chosenOp.CompareAndSwap(0, uint32(op)+1) {
		return err
	}
	return v.refuseOther(op)
}

// refuseOther says why an operation is refused in a window made with SameOp that has settled on another.
func (v *view) refuseOther(op Op) error {
	if chosen := v.chosenOp.Load(); chosen != 0 && chosen != uint32(op)+1 {
		return fmt.Errorf("%w: the window was made with SameOp and its operation is %v, this is %v", ErrHint, Op(chosen-1), op)
	}
	return nil
}

// refuseAny is refuseOp but for SameOp.
func (v *view) refuseAny(op Op, count int) error {
	if err := reduce.Supported(v.kind, op); err != nil {
		return err
	}
	if v.hints.readOnly && op != NoOp {
		return ErrReadOnly
	}
	if v.hints.cardAtomics {
		if err := v.refuseAtomic(op); err != nil {
			return err
		}
	}
	if v.hints.singleElement && count > 1 && op != NoOp {
		return fmt.Errorf("%w: the window was made with SingleElement, this has %s", ErrHint, errtext.Count(count, "element"))
	}
	return nil
}
