package window

import (
	"unsafe"

	"github.com/onesided/rma/aggregate"
	"github.com/onesided/rma/internal/cpucopy"
)

// The transfers of count elements. Sound because origin and result are the memory of slices of count elements of the
// view's kind: see address. Every access to a window is first checked against its length.
//
// put and get each spell out the fast path. A processor has more operations in flight to memory if each makes fewer
// stores, and a call that is not inlined makes several.

func (v *view) put(origin unsafe.Pointer, count, target, displacement int) error {
	if uint(target) < uint(len(v.targets)) {
		t := &v.targets[target]
		if memory := t.memory.Load(); memory != nil && uint(displacement) < uint(t.count) && uint(count-1) < uint(t.count-displacement) && v.epochs.Open(target) {
			to := unsafe.Add(unsafe.Pointer(memory), displacement<<(v.shift&7))
			if bytes := count << (v.shift & 7); bytes == 8 {
				*(*uint64)(to) = *(*uint64)(origin)
			} else {
				move(to, origin, bytes)
			}
			return nil
		}
	}
	return v.putAny("Put", origin, count, target, displacement)
}

func (v *view) get(result unsafe.Pointer, count, target, displacement int) error {
	if uint(target) < uint(len(v.targets)) {
		t := &v.targets[target]
		if memory := t.memory.Load(); memory != nil && uint(displacement) < uint(t.count) && uint(count-1) < uint(t.count-displacement) && v.epochs.Open(target) {
			from := unsafe.Add(unsafe.Pointer(memory), displacement<<(v.shift&7))
			if bytes := count << (v.shift & 7); bytes == 8 {
				*(*uint64)(result) = *(*uint64)(from)
			} else {
				move(result, from, bytes)
			}
			return nil
		}
	}
	return v.getAny("Get", result, count, target, displacement)
}

// queueFor returns the queue of a target for an operation on a part of its window, or nil if the operation takes the
// slow path.
func (v *view) queueFor(count, target, displacement int) *deferred {
	if uint(target) >= uint(len(v.targets)) {
		return nil
	}
	t := &v.targets[target]
	d := t.queue.Load()
	if d == nil || uint(displacement) >= uint(t.count) || uint(count-1) >= uint(t.count-displacement) || !v.epochs.Open(target) {
		return nil
	}
	return d
}

// putAny is the path of a put that fails the check of the fast path.
func (v *view) putAny(op string, origin unsafe.Pointer, count, target, displacement int) error {
	if d := v.queueFor(count, target, displacement); d != nil {
		if err := d.put(origin, count<<v.shift, v.offset(displacement)); err != nil {
			return v.failed(op, target, displacement, count, err)
		}
		return nil
	}
	if v.core == nil {
		return unmade(op)
	}
	if v.watch == nil {
		return v.doPut(op, origin, count, target, displacement)
	}
	i := issue{call: op, kind: aggregate.Put, origin: origin, count: count, target: target, displacement: displacement}
	return v.watched(&i, func() error { return v.doPut(op, origin, count, target, displacement) })
}

func (v *view) doPut(op string, origin unsafe.Pointer, count, target, displacement int) error {
	p, err := v.reach(op, target, displacement, count)
	if err == nil && v.hints.ReadOnly {
		err = &OpError{Op: op, Target: target, Displacement: displacement, Count: count, Cause: ErrReadOnly}
	}
	if err != nil || count == 0 {
		return err
	}
	if to, ok := v.mapped(target, displacement); ok {
		move(to, origin, count<<v.shift)
		return nil
	}
	if p.link != nil {
		if err := p.deferred.put(origin, count<<v.shift, v.offset(displacement)); err != nil {
			return v.failed(op, target, displacement, count, err)
		}
		return nil
	}
	if err := p.neighbor.WriteAt(memoryAt(origin, count<<v.shift), p.region, v.offset(displacement)); err != nil {
		return v.failed(op, target, displacement, count, err)
	}
	return nil
}

// getAny is the path of a get that fails the check of the fast path.
func (v *view) getAny(op string, result unsafe.Pointer, count, target, displacement int) error {
	if d := v.queueFor(count, target, displacement); d != nil {
		if err := d.get(result, count<<v.shift, v.offset(displacement)); err != nil {
			return v.failed(op, target, displacement, count, err)
		}
		return nil
	}
	if v.core == nil {
		return unmade(op)
	}
	if v.watch == nil {
		return v.doGet(op, result, count, target, displacement)
	}
	i := issue{call: op, kind: aggregate.Get, result: result, count: count, target: target, displacement: displacement}
	return v.watched(&i, func() error { return v.doGet(op, result, count, target, displacement) })
}

func (v *view) doGet(op string, result unsafe.Pointer, count, target, displacement int) error {
	p, err := v.reach(op, target, displacement, count)
	if err != nil || count == 0 {
		return err
	}
	if from, ok := v.mapped(target, displacement); ok {
		move(result, from, count<<v.shift)
		return nil
	}
	if p.link != nil {
		if err := p.deferred.get(result, count<<v.shift, v.offset(displacement)); err != nil {
			return v.failed(op, target, displacement, count, err)
		}
		return nil
	}
	if err := p.neighbor.ReadAt(memoryAt(result, count<<v.shift), p.region, v.offset(displacement)); err != nil {
		return v.failed(op, target, displacement, count, err)
	}
	return nil
}

// mapped returns the address of target's element at displacement, and false if its memory is not mapped. reach has
// checked displacement.
func (v *view) mapped(target, displacement int) (unsafe.Pointer, bool) {
	memory := v.targets[target].data.Load()
	if memory == nil {
		return nil, false
	}
	return unsafe.Add(unsafe.Pointer(memory), displacement<<v.shift), true
}

// move copies bytes bytes. It is not inlined, so that a short put does not save registers for it.
//
//go:noinline
func move(to, from unsafe.Pointer, bytes int) {
	if bytes < cpucopy.Least {
		copy(memoryAt(to, bytes), memoryAt(from, bytes))
		return
	}
	cpucopy.Copy(memoryAt(to, bytes), memoryAt(from, bytes))
}

// memoryAt returns the bytes bytes at an address.
func memoryAt(at unsafe.Pointer, bytes int) []byte { return unsafe.Slice((*byte)(at), bytes) }

// putNotify is PutNotify.
func (v *view) putNotify(origin unsafe.Pointer, count, target, displacement, slot int) error {
	if v.core == nil {
		return unmade(putNotify)
	}
	if err := v.checkSlot(putNotify, slot); err != nil {
		return err
	}
	if err := v.putAny(putNotify, origin, count, target, displacement); err != nil {
		return err
	}
	p, err := v.peer(target)
	if err != nil {
		return err
	}
	// The atomic add to the slot comes after the stores of the put. It pairs with the load in takeNotifications.
	if p.link != nil && p.data == nil {
		if err := p.deferred.notify(slot, count<<v.shift); err != nil {
			return v.failed(putNotify, target, displacement, count, err)
		}
		return nil
	}
	v.world.RaceRelease()
	if v.watch != nil && v.watch.counts {
		v.watch.operations[aggregate.Notify].Add(1)
	}
	p.control.slot(slot).Add(1)
	p.neighbor.Wake()
	return nil
}
