package window

import (
	"fmt"
	"unsafe"

	"github.com/onesided/rma/aggregate/reduce"
	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/internal/prefetch"
)

// AccumulateEach combines origin[i] into the element of target's window at displacements[i], in the order of i. It is as
// many Accumulates of one element, with one check for all, and is faster. A displacement may occur several times. If a
// displacement is out of range, no element is combined. After any other error some elements may have been.
func (w *Window[T]) AccumulateEach(op Op, origin []T, target int, displacements []int) error {
	if len(origin) != len(displacements) {
		return fmt.Errorf("window: %s: %w: %s for %s; there must be as many", callEach, ErrArgument, errtext.Count(len(displacements), "displacement"), errtext.Count(len(origin), "element"))
	}
	return w.of().scatter(op, address(origin), target, displacements)
}

const (
	callEach = "AccumulateEach"
	// scatterPiece is the number of elements after which scatter looks again whether the epoch is open. As many are
	// queued under the mutex, which is taken for a short time.
	scatterPiece = 64
)

// scatter is AccumulateEach of elements side by side from origin on. Sound because there are as many as displacements.
func (v *view) scatter(op Op, origin unsafe.Pointer, target int, displacements []int) error {
	if uint(target) < uint(len(v.targets)) {
		count := uint(v.targets[target].count)
		for _, displacement := range displacements {
			if uint(displacement) < count {
				continue
			}
			if _, err := v.reach(callEach, target, displacement, 1); err != nil {
				return err
			}
		}
	}
	if len(displacements) == 0 {
		return v.accumulateAny(callEach, op, operands{}, target, 0)
	}
	for i, displacement := range displacements {
		if i == 1 {
			// The first accumulate has set up what the others need.
			if done, err := v.scatterShort(op, unsafe.Add(origin, 1<<v.shift), target, displacements[1:]); done {
				return err
			}
		}
		if err := v.accumulateAny(callEach, op, operands{origin: unsafe.Add(origin, i<<v.shift), count: 1}, target, displacement); err != nil {
			return err
		}
	}
	return nil
}

// scatterShort is scatter by the fast path. short reports whether that is possible.
func (v *view) scatterShort(op Op, origin unsafe.Pointer, target int, displacements []int) (short bool, err error) {
	if int(op) >= len(v.kernels.apply) || v.kernels.apply[op] == nil || !v.chosen(op) {
		return false, nil
	}
	t, done := &v.targets[target], 0
	if memory := t.memory.Load(); memory != nil {
		done, err = v.scatterMapped(t, unsafe.Pointer(memory), op, origin, target, displacements)
	} else {
		d := t.queue.Load()
		if d == nil || v.shift > 3 || op == NoOp {
			return false, nil
		}
		done, err = d.scatter(op, v.kind, v.shift, origin, displacements)
	}
	if err != nil {
		err = v.failed(callEach, target, displacements[done], len(displacements)-done, err)
	}
	return true, err
}

// scatterMapped is scatter for mapped memory, with prefetching of later elements. It returns the number of elements
// done. Each displacement is checked again, because the program may have changed the slice.
func (v *view) scatterMapped(t *target, memory unsafe.Pointer, op Op, origin unsafe.Pointer, target int, displacements []int) (done int, err error) {
	if t.stripes.far {
		// The held accumulates come first in program order.
		v.settle()
		for _, displacement := range displacements[:min(mostHeld, len(displacements))] {
			prefetch.Write(unsafe.Add(memory, displacement<<(v.shift&7)))
		}
	}
	apply := v.kernels.apply[op]
	var native reduce.AtomicFunc
	if v.native {
		native = v.kernels.atomic[op]
	}
	for i, displacement := range displacements {
		if i%scatterPiece == 0 && !v.epochs.Open(target) {
			return i, v.whyClosed("operation", target)
		}
		if uint(displacement) >= uint(t.count) {
			return i, fmt.Errorf("%w: displacement %d, which was another when the call began", ErrRange, displacement)
		}
		if t.stripes.far && mostHeld < len(displacements)-i {
			prefetch.Write(unsafe.Add(memory, displacements[i+mostHeld]<<(v.shift&7)))
		}
		offset := displacement << (v.shift & 7)
		to, from := unsafe.Add(memory, offset), unsafe.Add(origin, i<<(v.shift&7))
		if native != nil {
			native(to, from, nil)
			continue
		}
		stripe := t.stripes.at(uint64(offset))
		v.lockStripe(stripe)
		apply(to, from, 1)
		v.giveStripe(stripe)
	}
	return len(displacements), nil
}

// scatter queues accumulates of one element of at most a word each: see scheduler.Queue.Accumulate. It returns the
// number that it has queued. Sound because there are as many elements side by side from origin on as displacements.
// origin itself is not advanced, because it would end after the last element, where other memory may be.
func (d *deferred) scatter(op Op, element reduce.Kind, shift uint8, origin unsafe.Pointer, displacements []int) (done int, err error) {
	for done < len(displacements) {
		if err := d.openShort(); err != nil {
			return done, err
		}
		if !d.planner.Runs() {
			d.mu.UnlockShort()
			operand := wordOf(unsafe.Add(origin, done<<(shift&7)), shift)
			if err := d.accumulate(op, element, 1<<(shift&7), uint64(displacements[done])<<(shift&7), operand); err != nil {
				return done, err
			}
			done++
			continue
		}
		piece := displacements[done:]
		piece = piece[:min(len(piece), scatterPiece, d.planner.Room(&d.queue))]
		words := d.queue.Accumulates(op, element, 1<<(shift&7), len(piece))
		for i, displacement := range piece {
			words[2*i] = uint64(displacement) << (shift & 7)
			words[2*i+1] = wordOf(unsafe.Add(origin, (done+i)<<(shift&7)), shift)
		}
		if err := d.queued(); err != nil {
			return done, err
		}
		done += len(piece)
	}
	return done, nil
}
