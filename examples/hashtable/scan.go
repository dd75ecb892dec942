package hashtable

import "fmt"

// scan looks for the key in the slots that were read, from index on.
func (b *Batch) scan(op *operation) {
	for ; op.index < bucketSlots; op.index++ {
		s := slot(op.slots[op.index])
		switch {
		case s == 0:
			b.vacant(op)
			return
		case s.frozen():
			if b.leaving(op, s) {
				return
			}
		case s.matches(op.home.fingerprint):
			b.candidate(op, s)
			return
		}
	}
	op.index = 0
	if op.probed++; op.probed < op.at.buckets {
		op.step = stepBucket
		return
	}
	b.exhausted(op)
}

// leaving handles a slot that is frozen, closed or moved. It reports whether the scan of the bucket ends.
func (b *Batch) leaving(op *operation, s slot) bool {
	switch {
	case op.next && op.kind == opMove:
		// Keys that leave the next index have all arrived there.
		b.done(op)
	case op.next:
		b.restart(op)
	case s == slotClosed:
		op.left = true
		b.follow(op)
	case s == slotMoved:
		op.left = true
		return false
	case s.matches(op.home.fingerprint):
		b.candidate(op, s)
	default:
		return false
	}
	return true
}

// vacant continues from an empty slot: the key is not in this index.
func (b *Batch) vacant(op *operation) {
	switch {
	case op.next && op.kept != 0:
		op.current = 0
		op.step = stepCopy
	case op.next && op.inserts() && op.index >= b.roomForNew(op):
		b.failSlots(op)
	case !op.next && op.inserts() && b.leaves(op):
		op.current = 0
		op.step = stepClose
	case op.left && !op.next:
		b.follow(op)
	default:
		b.absent(op)
	}
}

// roomForNew returns the number of slots of a bucket that new keys may take while others move there. In an index of
// twice the slots it is half of them, otherwise none, so that every key that moves finds a slot.
func (b *Batch) roomForNew(op *operation) int {
	if op.view.next.level() > op.view.current.level() {
		return bucketSlots / 2
	}
	return 0
}

// exhausted continues when no slot of the index is empty.
func (b *Batch) exhausted(op *operation) {
	switch {
	case !op.next && (op.left || op.view.moving()):
		b.follow(op)
	case op.inserts() || op.kept != 0:
		b.failSlots(op)
	default:
		b.done(op)
	}
}

// inserts reports whether the operation gives a slot to a key that has none.
func (op *operation) inserts() bool { return op.kind == opPut || op.kind == opAdd }

func (op *operation) reads() bool { return op.kind == opGet || op.kind == opCount }

// leaves reports whether keys are leaving the index that the operation is looking at.
func (b *Batch) leaves(op *operation) bool { return !op.next && op.view.moving() }

// follow continues in the next index.
func (b *Batch) follow(op *operation) {
	if !op.view.moving() {
		b.restart(op)
		return
	}
	op.next, op.at = true, b.table.indexOf(op.view.next)
	op.probed, op.index, op.step = 0, 0, stepBucket
	if op.inserts() {
		b.note(op).moving = true
	}
}

// restart begins again with a view that is yet to be read.
func (b *Batch) restart(op *operation) {
	b.viewOf(op).run = 0
	b.begin(op)
}

// begin begins again.
func (b *Batch) begin(op *operation) {
	if op.restarts++; op.restarts > mostRestarts {
		op.fail(b, fmt.Errorf("%w: rank %d has slots that were left, at %#x", ErrCorrupt, op.home.owner, uint64(op.view.current)))
		return
	}
	b.retries++
	op.view, op.at = view{}, index{}
	op.found, op.next, op.left, op.kept = false, false, false, 0
	op.probed, op.index, op.step = 0, 0, stepBucket
}

// mostRestarts is greater than the number of times that any table's keys move during an operation.
const mostRestarts = 1000

// failSlots ends an operation for which there is no slot.
func (b *Batch) failSlots(op *operation) {
	b.isShort = true
	n := b.note(op)
	n.noSlot, n.known = true, op.view.current
	op.fail(b, &FullError{Rank: op.home.owner, Slots: true, Need: 1, Used: min(op.at.buckets, mostProbes) * bucketSlots, Capacity: op.at.buckets * bucketSlots})
}

// replacement returns the value to which the operation's slot is set.
func (op *operation) replacement() slot {
	switch {
	case op.step == stepCopy:
		return op.kept &^ slotFrozen
	case op.step == stepClose && op.current == 0:
		return slotClosed
	case op.step == stepClose:
		return slotMoved
	case op.kind == opDelete:
		return op.current &^ slotLive
	}
	return op.swap
}

// afterClose continues when the key can no longer appear in the current index.
func (b *Batch) afterClose(op *operation) {
	if was := slot(op.word); was != op.current {
		b.retries++
		op.slots[op.index] = uint64(was)
		b.scan(op)
		return
	}
	b.retire(op.home.owner, op.current)
	op.left = true
	b.follow(op)
}

// afterCopy continues when the next index has the key's record, or another key in its slot.
func (b *Batch) afterCopy(op *operation) {
	if was := slot(op.word); was != 0 {
		b.retries++
		op.slots[op.index] = uint64(was)
		b.scan(op)
		return
	}
	op.current = op.kept &^ slotFrozen
	b.decide(op)
}

// retire gives up the record to which a slot referred.
func (b *Batch) retire(owner int, s slot) {
	if s != 0 {
		b.retired = append(b.retired, retired{owner: owner, piece: piece{s.place(), pieceWords(s.words())}})
	}
}

// candidate continues with the record of a slot that has the key's fingerprint.
func (b *Batch) candidate(op *operation, s slot) {
	if err := b.table.check(s); err != nil {
		op.fail(b, err)
		return
	}
	op.current = s
	op.step = stepRecord
}

// absent continues from an empty slot: the key is not in the table.
func (b *Batch) absent(op *operation) {
	if !op.inserts() {
		b.done(op)
		return
	}
	if op.probed >= mostProbes {
		b.failSlots(op)
		return
	}
	op.current = 0
	b.publish(op)
}

// compare checks whether the record is that of the key.
func (b *Batch) compare(op *operation) {
	keyLength, valueLength, err := op.current.lengths(op.record)
	if err != nil {
		op.fail(b, err)
		return
	}
	rest := op.record[lengthsBytes:]
	if keyLength != len(op.key) || string(rest[:keyLength]) != op.key {
		op.index++
		b.scan(op)
		return
	}
	if op.current.frozen() && !op.reads() {
		op.kept, op.keptPlace = op.current, b.slotPlace(op)
		b.follow(op)
		return
	}
	if op.kind == opGet {
		value := rest[keyLength : keyLength+valueLength]
		if op.mapped {
			value = b.memory.copy(value)
		}
		op.record = value
	}
	b.decide(op)
}

// decide continues from the key's slot, whose value is current.
func (b *Batch) decide(op *operation) {
	s := op.current
	op.found = s.live()
	switch onCounter := op.kind == opAdd || op.kind == opCount; {
	case op.kind == opMove:
		b.done(op)
	case op.kept != 0:
		// The record must not be freed while a slot of the current index refers to it: as long as it does, readers
		// take it for the key's value.
		op.step = stepMark
	case s.live() && op.kind != opDelete && s.counter() != onCounter:
		op.found = false
		op.fail(b, fmt.Errorf("%w: the value is %s", ErrKind, kindName(s.counter())))
	case op.inserts() && !s.live() && b.leaves(op):
		op.step = stepClose
	case op.kind == opPut, op.kind == opAdd && !s.live():
		b.publish(op)
	case !s.live():
		b.done(op)
	case op.kind == opAdd:
		op.step = stepAdd
	case op.kind == opDelete:
		op.step = stepSwap
	default:
		if op.kind == opCount {
			op.count = op.word
		}
		b.done(op)
	}
}

func kindName(counter bool) string {
	if counter {
		return "a counter"
	}
	return "bytes"
}

// publish continues by setting the key's slot to a record of the operation.
func (b *Batch) publish(op *operation) {
	op.step = stepSwap
	switch {
	case op.own.words == 0:
		op.step = stepSpace
	case !op.written:
		op.step = stepWrite
	}
}

// swapped handles the value that the slot had at the compare-and-swap.
func (b *Batch) swapped(op *operation) {
	was := slot(op.word)
	switch {
	case was == op.current:
		if op.kind != opDelete {
			op.own = piece{}
			op.count = op.delta
			b.retire(op.home.owner, op.current)
			if op.current == 0 && op.probed >= farProbes {
				n := b.note(op)
				n.farFromHome, n.known = true, op.view.current
			}
		}
		b.done(op)
	case op.current == 0:
		b.retries++
		// Another operation has taken the slot, perhaps for this key, or closed it.
		op.slots[op.index] = uint64(was)
		b.scan(op)
	case was.frozen():
		// The key is leaving this index, with the value that was read or another.
		op.current = 0
		b.restart(op)
	case op.kind == opPut && op.current.live():
		// Another operation has replaced or deleted the value that was read. This one takes effect just before it.
		b.done(op)
	default:
		b.retries++
		// The slot is the key's own, with another value.
		if err := b.table.check(was); err != nil {
			op.fail(b, err)
			return
		}
		op.current = was
		b.decide(op)
	}
}
