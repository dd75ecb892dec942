package hashtable

import (
	"context"
	"errors"
	"fmt"

	"github.com/onesided/rma/window"
)

// opKind is what an operation does.
type opKind uint8

const (
	opGet opKind = iota
	opCount
	opPut
	opAdd
	opDelete
)

var opNames = [...]string{"Get", "Count", "Put", "Add", "Delete"}

// step is what an operation does next.
type step uint8

const (
	// stepBucket reads the slots of a bucket.
	stepBucket step = iota
	// stepRecord reads the record to compare its key.
	stepRecord
	// stepAdd adds to the counter.
	stepAdd
	// stepSpace allocates a record, stepWrite puts it, stepSwap publishes it.
	stepSpace
	stepWrite
	stepSwap
	stepDone
)

// An operation is one of a batch, and where it has come to. The results of a round are
// written into it by the window.
type operation struct {
	kind  opKind
	step  step
	found bool
	home  home
	// probed is how many buckets after the home bucket this one is, index a slot
	// of it.
	probed int
	index  int
	slots  [bucketSlots]uint64

	key   string
	value []byte
	delta uint64

	// word is the result of an atomic: the slot's value, or a counter's.
	word uint64
	// current is the slot's value as last read.
	current slot
	// record is what was read, from the word of lengths on; when a Get is done,
	// the value.
	record []byte
	// mapped: record is in the owner's memory.
	mapped bool
	// own is a record of this operation that no slot refers to. asked: the round allocates
	// it. written: it was put.
	own     piece
	asked   bool
	written bool
	// swap is the value that stepSwap sets.
	swap slot

	count uint64
	err   error
}

// A round carries out the next step of every active operation. The steps of all are
// issued, then the ranks they go to are flushed, then the results are looked at.
func (b *Batch) round(ctx context.Context) {
	for _, i := range b.active {
		op := &b.ops[i]
		switch err := b.issue(op); {
		case err == nil:
		case errors.Is(err, ErrFull):
			op.fail(b, err)
		default:
			b.spoiled = true
			op.lose(b, err)
		}
	}
	b.addSpace()
	b.flush(ctx)
	still := b.active[:0]
	for _, i := range b.active {
		op := &b.ops[i]
		if op.step == stepDone {
			continue
		}
		if err := b.owners[op.home.owner].err; err != nil {
			op.lose(b, err)
			continue
		}
		if op.asked {
			b.getEarly(op)
		}
		b.advance(op)
		if op.step != stepDone {
			still = append(still, i)
		}
	}
	b.active = still
	b.keepSpace()
	for _, rank := range b.touched {
		b.owners[rank] = ownerRound{}
	}
	b.touched = b.touched[:0]
}

func (b *Batch) touch(rank int) *ownerRound {
	o := &b.owners[rank]
	if !o.touched {
		o.touched = true
		b.touched = append(b.touched, int32(rank))
	}
	return o
}

// flush completes the round's operations. A rank that fails fails its operations, not
// those on other ranks.
func (b *Batch) flush(ctx context.Context) {
	for _, rank := range b.touched {
		if err := b.table.words.Flush(ctx, int(rank)); err != nil {
			b.spoiled = true
			if o := &b.owners[rank]; o.err == nil {
				o.err = err
			}
		}
	}
}

// issue starts the operation's step.
func (b *Batch) issue(op *operation) error {
	t, owner := b.table, op.home.owner
	b.touch(owner)
	switch op.step {
	case stepBucket:
		b.askEarly(op)
		return t.words.GetAccumulate(window.NoOp, nil, op.slots[:], owner, t.bucketStart(b.bucket(op)))
	case stepRecord:
		if err := b.writeEarly(op); err != nil {
			return err
		}
		return b.readRecord(op)
	case stepAdd:
		return t.words.FetchAndOp(window.Sum, op.delta, &op.word, owner, t.recordStart()+op.current.place())
	case stepSpace:
		return b.takeSpace(op)
	case stepWrite:
		return b.writeRecord(op)
	default:
		return t.words.CompareAndSwap(uint64(op.current), uint64(op.swap), &op.word, owner, b.slotPlace(op))
	}
}

// bucket is the one that the operation is looking at.
func (b *Batch) bucket(op *operation) int {
	n := op.home.bucket + op.probed
	if n >= b.table.buckets {
		n -= b.table.buckets
	}
	return n
}

func (b *Batch) slotPlace(op *operation) int {
	return b.table.bucketStart(b.bucket(op)) + op.index
}

// readRecord reads as much of the record as the operation needs: all of it for its
// value, else what can be compared with the key.
func (b *Batch) readRecord(op *operation) error {
	t, s := b.table, op.current
	start := (t.recordStart() + s.place()) * wordBytes
	n := s.words()*wordBytes - s.prefix()
	if op.kind != opGet {
		n = min(n, lengthsBytes+len(op.key))
	}
	op.record, op.mapped = b.memory.take(n), false
	if err := t.bytes.Get(op.record, op.home.owner, start+s.prefix()); err != nil {
		return err
	}
	if op.kind == opCount && s.counter() {
		return t.words.FetchAndOp(window.NoOp, 0, &op.word, op.home.owner, t.recordStart()+s.place())
	}
	return nil
}

// writeRecord puts the operation's record into the space that it has.
func (b *Batch) writeRecord(op *operation) error {
	record := b.memory.take(op.recordWords() * wordBytes)
	op.encode(record)
	return b.table.bytes.Put(record, op.home.owner, (b.table.recordStart()+op.own.place)*wordBytes)
}

// encode writes the operation's record into record, which has its words.
func (op *operation) encode(record []byte) {
	if op.kind == opAdd {
		encodeCounter(record, op.key, op.delta)
	} else {
		encodeBytes(record, op.key, op.value)
	}
}

// advance looks at the result of the operation's step and decides on the next.
func (b *Batch) advance(op *operation) {
	switch op.step {
	case stepBucket:
		op.index = 0
		b.scan(op)
	case stepRecord:
		b.compare(op)
	case stepAdd:
		op.count = op.word + op.delta
		b.done(op)
	case stepSpace:
		b.getSpace(op)
	case stepWrite:
		op.step, op.written = stepSwap, true
	case stepSwap:
		b.swapped(op)
	}
}

// scan looks for the key in the slots that were read, from index on.
func (b *Batch) scan(op *operation) {
	for ; op.index < bucketSlots; op.index++ {
		s := slot(op.slots[op.index])
		switch {
		case s == 0:
			b.absent(op)
			return
		case s.matches(op.home.fingerprint):
			b.candidate(op, s)
			return
		}
	}
	if op.probed++; op.probed < b.table.probes {
		op.step = stepBucket
		return
	}
	if op.kind == opPut || op.kind == opAdd {
		t := b.table
		op.fail(b, &FullError{Rank: op.home.owner, Slots: true, Need: 1, Used: t.probes * bucketSlots, Capacity: t.buckets * bucketSlots})
		return
	}
	b.done(op)
}

// candidate goes on to the record of a slot that has the key's fingerprint.
func (b *Batch) candidate(op *operation, s slot) {
	if err := b.table.check(s); err != nil {
		op.fail(b, err)
		return
	}
	op.current = s
	op.step = stepRecord
}

// absent goes on from an empty slot: the key is not there.
func (b *Batch) absent(op *operation) {
	if op.kind != opPut && op.kind != opAdd {
		b.done(op)
		return
	}
	op.current = 0
	b.publish(op)
}

// compare finds out whether the record is that of the key.
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
	if op.kind == opGet {
		value := rest[keyLength : keyLength+valueLength]
		if op.mapped {
			value = b.memory.copy(value)
		}
		op.record = value
	}
	b.decide(op)
}

// decide goes on from the key's slot, whose value is current.
func (b *Batch) decide(op *operation) {
	s := op.current
	op.found = s.live()
	switch onCounter := op.kind == opAdd || op.kind == opCount; {
	case s.live() && op.kind != opDelete && s.counter() != onCounter:
		op.found = false
		op.fail(b, fmt.Errorf("%w: the value is %s", ErrKind, kindName(s.counter())))
	case op.kind == opPut, op.kind == opAdd && !s.live():
		b.publish(op)
	case !s.live():
		b.done(op)
	case op.kind == opAdd:
		op.step = stepAdd
	case op.kind == opDelete:
		op.swap = s &^ slotLive
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

// publish goes on to set the key's slot to a record of the operation's own.
func (b *Batch) publish(op *operation) {
	op.step = stepSwap
	switch {
	case op.own.words == 0:
		op.step = stepSpace
	case !op.written:
		op.step = stepWrite
	}
}

// swapped looks at what the slot was when it was to be set.
func (b *Batch) swapped(op *operation) {
	was := slot(op.word)
	switch {
	case was == op.current:
		if op.kind != opDelete {
			op.own = piece{}
			op.count = op.delta
			if old := op.current; old != 0 {
				b.retired = append(b.retired, retired{op.home.owner, piece{old.place(), pieceWords(old.words())}})
			}
		}
		b.done(op)
	case op.current == 0:
		b.retries++
		// Somebody has taken the slot, perhaps for this key.
		op.slots[op.index] = uint64(was)
		b.scan(op)
	case op.kind == opPut && op.current.live():
		// Another operation has replaced or deleted the value that was there. This one came
		// just before it.
		b.done(op)
	default:
		b.retries++
		// It is the key's own slot, with another value.
		if err := b.table.check(was); err != nil {
			op.fail(b, err)
			return
		}
		op.current = was
		b.decide(op)
	}
}

// done ends the operation. A record that nothing refers to is kept for another one.
func (b *Batch) done(op *operation) {
	op.step = stepDone
	if op.own.words > 0 {
		b.table.spaces[op.home.owner].give(op.own)
		op.own = piece{}
	}
}

// fail ends the operation with an error.
func (op *operation) fail(b *Batch, cause error) {
	b.done(op)
	op.err = &OpError{Op: opNames[op.kind], Key: op.key, Rank: op.home.owner, Cause: cause}
}

// lose is fail where nobody knows what became of the step. The record may yet be written,
// or be published already: it is not used again.
func (op *operation) lose(b *Batch, cause error) {
	op.own = piece{}
	op.fail(b, cause)
}
