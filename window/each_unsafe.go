package window

import (
	"fmt"
	"unsafe"

	"github.com/onesided/rma/aggregate/reduce"
)

// AccumulateEach combines origin[i] into the element of target's window at displacements[i], in the order of
// i: as many Accumulates of one element as there are displacements, which may come several times. It takes
// about half as long as those, because what has to be checked is checked once for all. None is carried out if a
// displacement is out of range.
func (w *Window[T]) AccumulateEach(op Op, origin []T, target int, displacements []int) error {
	if len(origin) != len(displacements) {
		return fmt.Errorf("window: AccumulateEach: %w: %d displacements for %d elements; allowed are as many", ErrArgument, len(displacements), len(origin))
	}
	return w.scatter(op, address(origin), target, displacements)
}

// scatter is AccumulateEach of elements side by side from origin on. Sound because there are as many as displacements.
func (v *view) scatter(op Op, origin unsafe.Pointer, target int, displacements []int) error {
	if uint(target) < uint(len(v.targets)) {
		count := uint(v.targets[target].count)
		for _, displacement := range displacements {
			if uint(displacement) < count {
				continue
			}
			if _, err := v.reach("AccumulateEach", target, displacement, 1); err != nil {
				return err
			}
		}
	}
	if len(displacements) == 0 {
		return v.accumulateAny("AccumulateEach", op, operands{}, target, 0)
	}
	// The first finds out all that the others need.
	if err := v.accumulate(op, origin, 1, target, displacements[0]); err != nil {
		return err
	}
	for {
		if displacements = displacements[1:]; len(displacements) == 0 {
			return nil
		}
		origin = unsafe.Add(origin, 1<<v.shift)
		if done, err := v.scatterShort(op, origin, target, displacements); done {
			return err
		}
		if err := v.accumulate(op, origin, 1, target, displacements[0]); err != nil {
			return err
		}
	}
}

// scatterShort is scatter for who passes the short check, and tells whether that is so.
func (v *view) scatterShort(op Op, origin unsafe.Pointer, target int, displacements []int) (done bool, err error) {
	if uint(target) >= uint(len(v.targets)) || int(op) >= len(v.kernels.apply) || v.kernels.apply[op] == nil || !v.chosen(op) || !v.epochs.Open(target) {
		return false, nil
	}
	t := &v.targets[target]
	if memory := t.memory.Load(); memory != nil {
		v.scatterMapped(t, unsafe.Pointer(memory), op, origin, displacements)
		return true, nil
	}
	d := t.queue.Load()
	if d == nil || v.shift > 3 || op == NoOp {
		return false, nil
	}
	if err := d.scatter(op, v.kind, v.shift, origin, displacements); err != nil {
		return true, v.failed("AccumulateEach", target, displacements[0], len(displacements), err)
	}
	return true, nil
}

// scatterMapped is scatter on memory that is mapped: what is ahead is fetched into the cache meanwhile.
func (v *view) scatterMapped(t *target, memory unsafe.Pointer, op Op, origin unsafe.Pointer, displacements []int) {
	if t.stripes.far {
		// What is held was called before.
		v.settle()
		for _, displacement := range displacements[:min(mostHeld, len(displacements))] {
			prefetch(unsafe.Add(memory, displacement<<(v.shift&7)))
		}
	}
	apply := v.kernels.apply[op]
	var native reduce.AtomicFunc
	if v.native {
		native = v.kernels.atomic[op]
	}
	for i, displacement := range displacements {
		if t.stripes.far && mostHeld < len(displacements)-i {
			prefetch(unsafe.Add(memory, displacements[i+mostHeld]<<(v.shift&7)))
		}
		offset := displacement << (v.shift & 7)
		to := unsafe.Add(memory, offset)
		from := unsafe.Add(origin, i<<(v.shift&7))
		if native != nil {
			native(to, from, nil)
			continue
		}
		stripe := t.stripes.at(uint64(offset))
		v.lockStripe(stripe)
		apply(to, from, 1)
		v.giveStripe(stripe)
	}
}

// scatterPiece is how many accumulates are queued with the mutex, which is taken for short.
const scatterPiece = 64

// scatter queues accumulates of one element of at most a word each; see scheduler.Queue.Accumulate. Sound because
// there are as many elements side by side from origin on as displacements: origin is not moved, which would end behind
// them, where other memory may be.
func (d *deferred) scatter(op Op, element reduce.Kind, shift uint8, origin unsafe.Pointer, displacements []int) error {
	for done := 0; done < len(displacements); done += scatterPiece {
		piece := displacements[done:min(done+scatterPiece, len(displacements))]
		if err := d.openShort(); err != nil {
			return err
		}
		if !d.planner.Runs() {
			d.mu.UnlockShort()
			if err := d.scatterEach(op, element, shift, unsafe.Add(origin, done<<(shift&7)), piece); err != nil {
				return err
			}
			continue
		}
		words := d.queue.Accumulates(op, element, 1<<(shift&7), len(piece))
		for i, displacement := range piece {
			words[2*i] = uint64(displacement) << (shift & 7)
			words[2*i+1] = wordOf(unsafe.Add(origin, (done+i)<<(shift&7)), shift)
		}
		if err := d.queued(); err != nil {
			return err
		}
	}
	return nil
}

// scatterEach is scatter where runs are left out.
func (d *deferred) scatterEach(op Op, element reduce.Kind, shift uint8, origin unsafe.Pointer, displacements []int) error {
	for i, displacement := range displacements {
		operand := wordOf(unsafe.Add(origin, i<<(shift&7)), shift)
		if err := d.accumulate(op, element, 1<<(shift&7), uint64(displacement)<<(shift&7), operand); err != nil {
			return err
		}
	}
	return nil
}
