package window

import (
	"fmt"

	"github.com/onesided/rma/aggregate/reduce"
	"github.com/onesided/rma/internal/errtext"
)

// Accumulate combines origin into target's window, element by element from displacement on: window = op(window,
// origin). Each element is atomic with respect to all other operations of the accumulate family on the window, from any
// rank. Accumulates from one origin to one location take effect in program order, unless the window is [Unordered].
//
// origin belongs to the library as in [Window.Put]. An op that elements of T do not have is an error that wraps
// reduce.ErrUnsupported: see [Op]. An accumulate that breaks a promise of an option is an [ErrPromise].
func (w *Window[T]) Accumulate(op Op, origin []T, target, displacement int) error {
	return w.of().accumulate(op, address(origin), len(origin), target, displacement)
}

// GetAccumulate is [Window.Accumulate] that also stores in result what each element was before. result is as long as
// origin and does not overlap it. With [NoOp] origin is not read and may be nil: GetAccumulate is then an atomic Get.
// result is valid when the call that completes the operation has returned, as in [Window.Get].
func (w *Window[T]) GetAccumulate(op Op, origin, result []T, target, displacement int) error {
	if len(origin) != len(result) && (op != NoOp || len(origin) != 0) {
		return fmt.Errorf("window: GetAccumulate: %w: origin has %s, result %d; they must have as many", ErrArgument, errtext.Count(len(origin), "element"), len(result))
	}
	return w.of().accumulateAny("GetAccumulate", op, operands{origin: address(origin), result: kept(result), count: len(result)}, target, displacement)
}

// FetchAndOp is [Window.GetAccumulate] of one element: *result becomes what the element was before op changed it. It is
// valid when the flush that completes the operation, or the end of the epoch, has returned. Under a lock
// [Window.FlushLocal] is enough. A nil result is an [ErrArgument].
func (w *Window[T]) FetchAndOp(op Op, operand T, result *T, target, displacement int) error {
	if result == nil {
		return fmt.Errorf("window: FetchAndOp: %w: nil result", ErrArgument)
	}
	return w.of().fetchAndOp(op, addressOf(&operand), keptElement(result), target, displacement)
}

// CompareAndSwap sets one element of target's window to swap if it equals compare bit for bit. *result becomes what the
// element was before, and is valid as in [Window.FetchAndOp].
func (w *Window[T]) CompareAndSwap(compare, swap T, result *T, target, displacement int) error {
	if result == nil {
		return fmt.Errorf("window: CompareAndSwap: %w: nil result", ErrArgument)
	}
	return w.of().compareAndSwap(addressOf(&compare), addressOf(&swap), keptElement(result), target, displacement)
}

// chosen reports whether op is the operation that a window with SameOp has chosen. Without SameOp it is always true.
func (v *view) chosen(op Op) bool { return !v.hints.SameOp || v.chosenOp.Load() == uint32(op)+1 }

// refuseOp returns the error that rejects an accumulate, or nil. On a window with SameOp the first operation chooses.
func (v *view) refuseOp(op Op, count int) error {
	if err := v.refuseAny(op, count); err != nil || !v.hints.SameOp || op == NoOp || v.chosenOp.CompareAndSwap(0, uint32(op)+1) {
		return err
	}
	return v.refuseOther(op)
}

// refuseOther returns the error that rejects op on a window with SameOp that has chosen another operation, or nil.
func (v *view) refuseOther(op Op) error {
	if chosen := v.chosenOp.Load(); chosen != 0 && chosen != uint32(op)+1 {
		return fmt.Errorf("%w: the window was made with SameOp and its operation is %v, this is %v", ErrPromise, Op(chosen-1), op)
	}
	return nil
}

// refuseAny is refuseOp without the check of SameOp.
func (v *view) refuseAny(op Op, count int) error {
	if err := reduce.Supported(v.kind, op); err != nil {
		return err
	}
	if v.hints.ReadOnly && op != NoOp {
		return ErrReadOnly
	}
	if v.hints.CardAtomics {
		if err := v.refuseAtomic(op); err != nil {
			return err
		}
	}
	if v.hints.SingleElement && count > 1 && op != NoOp {
		return fmt.Errorf("%w: the window was made with SingleElement, this has %s", ErrPromise, errtext.Count(count, "element"))
	}
	return nil
}
