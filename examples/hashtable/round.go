package hashtable

import (
	"context"
	"errors"

	"github.com/onesided/rma/window"
)

// opKind is the kind of an operation.
type opKind uint8

const (
	opGet opKind = iota
	opCount
	opPut
	opAdd
	opDelete
	// opMove copies a key whose slot is frozen to the next index.
	opMove
)

var opNames = [...]string{"Get", "Count", "Put", "Add", "Delete", "move"}

// step is the next step of an operation.
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
	// stepClose closes the slot where the key would be in an index that keys leave. stepCopy makes the next index
	// refer to the key's record, and then stepMark marks the old slot as moved.
	stepClose
	stepCopy
	stepMark
	stepDone
)

// An operation is an operation of a batch and its progress. The window writes the results of a round into it.
type operation struct {
	kind  opKind
	step  step
	found bool
	lane  uint8
	// leader is the number, plus 1, of the operation that is carried out for this one, too.
	leader int32
	home   home
	// view locates the owner's indexes, and at is the index that the operation is looking at. next is set if that is
	// the next index.
	view view
	at   index
	next bool
	// left is set if keys have left the part of the current index where this key may have been.
	left bool
	// kept is the value of the key's frozen slot in the current index, and keptPlace its displacement.
	kept      slot
	keptPlace int
	// probed is the distance of the present bucket from the home bucket, and index a slot in it. restarts counts how
	// often the operation has begun again.
	probed   int
	index    int
	restarts int
	slots    [bucketSlots]uint64

	key   string
	value []byte
	delta uint64

	// word is the result of an atomic operation: the value of a slot or a counter.
	word uint64
	// current is the slot's value as last read.
	current slot
	// record is what was read of the record, from the word of lengths on. When a Get is done, it is the value.
	record []byte
	// mapped is set if record is in the owner's memory.
	mapped bool
	// own is a piece of this operation to which no slot refers. asked is set if the round allocates it, written if
	// the record was put.
	own     piece
	asked   bool
	written bool
	// swap is the value that stepSwap sets.
	swap slot

	count uint64
	err   error
}

// leastPart is the usual value of Table.part. A batch of that many operations is divided into two parts; from three
// times that number on each part has at least leastPart operations. Smaller parts need more rounds, whose messages
// cost more than the overlap gains. Larger parts are not all on their way at once.
const leastPart = 256

// beginRound issues the next step of every operation of a lane and sends the steps to their ranks. Work that is done
// before endRound overlaps with the network.
func (b *Batch) beginRound(ctx context.Context, lane int) {
	l := &b.lanes[lane]
	if len(l.active) == 0 {
		b.load(ctx, lane)
	}
	for _, i := range l.active {
		op := &b.ops[i]
		switch err := b.issue(l, op); {
		case err == nil:
		case errors.Is(err, ErrFull):
			op.fail(b, err)
		default:
			b.spoiled = true
			op.lose(b, err)
		}
	}
	b.addSpace(l)
	if b.table.parallelFlush {
		for _, rank := range l.touched {
			b.flush(l, int(rank))
		}
	}
}

// endRound waits for the steps and processes their results.
func (b *Batch) endRound(ctx context.Context, l *lane) {
	for _, rank := range l.touched {
		if !b.table.parallelFlush {
			b.flush(l, int(rank))
		}
		b.flushed(l, int(rank), b.await(ctx, l.owners[rank].flush))
	}
	b.settleViews(l)
	still := l.active[:0]
	for _, i := range l.active {
		op := &b.ops[i]
		if op.step == stepDone {
			continue
		}
		if err := l.owners[op.home.owner].err; err != nil {
			op.lose(b, err)
			continue
		}
		if op.asked {
			b.getEarly(op)
		}
		if b.outdated(op) {
			b.begin(op)
		} else {
			b.advance(op)
		}
		if op.step != stepDone {
			still = append(still, i)
		}
	}
	l.active = still
	b.keepSpace(l)
	for _, rank := range l.touched {
		o := &l.owners[rank]
		next := ownerRound{tail: o.tail}
		if o.err != nil {
			// The window may still write to it.
			next.tail = nil
		}
		*o = next
	}
	l.touched = l.touched[:0]
}

// await waits for a request. Before it tests the request, and while it waits, it carries out mapped operations.
func (b *Batch) await(ctx context.Context, request window.Request) error {
	for b.direct(directGroups) {
		if done, err := request.Test(); done || err != nil {
			return err
		}
	}
	return request.Wait(ctx)
}

func (l *lane) touch(rank int) {
	if o := &l.owners[rank]; !o.touched {
		o.touched = true
		l.touched = append(l.touched, int32(rank))
	}
}

// ownerOf returns the state of the operation's owner in the round of its lane. viewOf returns what the lane knows of
// the owner's indexes.
func (b *Batch) ownerOf(op *operation) *ownerRound {
	return &b.lanes[op.lane].owners[op.home.owner]
}

func (b *Batch) viewOf(op *operation) *runView { return &b.lanes[op.lane].views[op.home.owner] }

// flush begins to complete the round's operations on a rank.
func (b *Batch) flush(l *lane, rank int) {
	request, err := b.table.words.RFlush(rank)
	l.owners[rank].flush = request
	b.flushed(l, rank, err)
}

// flushed records an error that concerns all of a rank's operations in the round. The failure of a rank fails the
// operations on it, and no others.
func (b *Batch) flushed(l *lane, rank int, err error) {
	if err == nil {
		return
	}
	b.spoiled = true
	if o := &l.owners[rank]; o.err == nil {
		o.err = err
	}
}

// issue starts the operation's step.
func (b *Batch) issue(l *lane, op *operation) error {
	t, owner := b.table, op.home.owner
	l.touch(owner)
	switch op.step {
	case stepBucket:
		b.askEarly(op)
		if err := b.locate(op); err != nil {
			return err
		}
		return t.words.GetAccumulate(window.NoOp, nil, op.slots[:], owner, b.slotPlace(op))
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
		place, known, to := b.swapOf(op)
		return t.words.CompareAndSwap(uint64(known), uint64(to), &op.word, owner, place)
	}
}

// swapOf returns the arguments of the step's compare-and-swap.
func (b *Batch) swapOf(op *operation) (place int, known, to slot) {
	if op.step == stepMark {
		return op.keptPlace, op.kept, slotMoved
	}
	return b.slotPlace(op), op.current, op.replacement()
}

// slotPlace returns the displacement of the slot that the operation is looking at.
func (b *Batch) slotPlace(op *operation) int {
	return op.at.place(op.at.bucket(op.home.low), op.probed, op.index)
}

// readRecord reads as much of the record as the operation needs: all of it for its value, otherwise the part that is
// compared with the key.
func (b *Batch) readRecord(op *operation) error {
	t, s := b.table, op.current
	start := (t.recordStart() + s.place()) * wordBytes
	n := s.recordBytes()
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

// writeRecord puts the operation's record into its piece.
func (b *Batch) writeRecord(op *operation) error {
	record := b.memory.take(op.recordWords() * wordBytes)
	op.encode(record)
	if raced {
		words := make([]uint64, op.recordWords())
		storeWords(words, record)
		return b.table.putWords(words, op.home.owner, b.table.recordStart()+op.own.place)
	}
	return b.table.bytes.Put(record, op.home.owner, (b.table.recordStart()+op.own.place)*wordBytes)
}

// encode writes the operation's record into record, which has the right length.
func (op *operation) encode(record []byte) {
	if op.kind == opAdd {
		encodeCounter(record, op.key, op.delta)
	} else {
		encodeBytes(record, op.key, op.value)
	}
}

// advance processes the result of the operation's step and chooses the next step.
func (b *Batch) advance(op *operation) {
	switch op.step {
	case stepBucket:
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
	case stepClose:
		b.afterClose(op)
	case stepCopy:
		b.afterCopy(op)
	case stepMark:
		// This or another rank has marked the slot as moved.
		op.kept = 0
		b.decide(op)
	}
}

// done ends the operation. A piece to which no slot refers is kept for another operation.
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

// lose is like fail, for a step whose outcome is unknown. The record may still be written, or may be published
// already, so its piece is not used again.
func (op *operation) lose(b *Batch, cause error) {
	op.own = piece{}
	op.fail(b, cause)
}
