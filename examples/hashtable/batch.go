package hashtable

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/onesided/rma/window"
)

// A Batch is operations that run together. It is used by one goroutine at a time.
//
//	batch := table.NewBatch()
//	for word, n := range counts {
//		batch.Add(word, n)
//	}
//	err := batch.Run(ctx)
//	...
//	batch.Reset()
//
// Its operations are concurrent with each other: those on one key take effect in any
// order, each as a whole. A thousand operations are enough to hide latencies.
type Batch struct {
	table *Table
	ops   []operation
	// ran is how many of ops have been run.
	ran    int
	active []int32
	// given is how many of active lanes have been given, each part as many as part says.
	given, part int
	memory      arena
	// mapped are the operations whose owners' memory is mapped, of which directed have been carried out. memories[r] is that
	// of rank r; group is where direct has the operations that it does together.
	mapped   []int32
	directed int
	memories []runMemory
	group    [directGroup]mappedOperation

	lanes [2]lane
	// leaders is where combine looks for operations that others follow; combined counts these others, of the Run.
	leaders  []int32
	combined uint64
	// spoiled: the window refused something in this Run, so that the library may still own
	// buffers of operations that were not completed.
	spoiled bool
	// announced is the announcement of the last Run, retired what no slot refers to since.
	announced int
	retired   []retired
	// starved is what operations of the last Run lack, if lacking. known is how many pieces had
	// been freed before.
	starved []starvation
	lacking bool
	// runs numbers what carries operations out. notes are what the Run has met of owners' indexes.
	runs  uint64
	notes []note
	// retries are those of the Run.
	retries uint64
	known   uint64
}

// starvation is pieces that some operations could not have. Of no words it is the block of an index, to follow the one that known
// names.
type starvation struct {
	owner, words, times int
	known               control
}

// A lane is some of a Run's operations that go from round to round together, by the window. Where there are many a lane
// has a part of them and, when these are done, the next one: there are two lanes, and the round of one is on its way while
// the results of the other are looked at.
type lane struct {
	active []int32
	// owners[r] is what the current round does at rank r; touched lists the ranks that it has operations on.
	owners  []ownerRound
	touched []int32
	// views[r] is where rank r has its index, as far as the lane has read it.
	views []runView
}

// ownerRound is one rank in a round.
type ownerRound struct {
	touched bool
	flush   window.Request
	err     error
	// need is how many record words the round allocates, tail where the result comes to be: in later rounds, too, but not
	// after an error.
	need int
	tail *uint64
	got  piece
}

// A Result is what became of an operation.
type Result struct {
	// Found tells whether the key was there before.
	Found bool
	// Value is what Get found, valid until Reset. It is not to be changed: several Gets of one key may have it.
	Value []byte
	// Count is what Count found, and the sum after Add.
	Count uint64
	// Err is an *OpError, or nil.
	Err error
}

// NewBatch makes an empty batch.
func (t *Table) NewBatch() *Batch {
	b := &Batch{table: t, memories: make([]runMemory, t.size), announced: int(t.entered.Add(1)) % announcements}
	b.makeLanes()
	return b
}

func (b *Batch) makeLanes() {
	for i := range b.lanes {
		b.lanes[i] = lane{owners: make([]ownerRound, b.table.size), views: make([]runView, b.table.size)}
	}
}

// Get queues a [Table.Get] and returns its number, for Result. So do the other
// methods.
func (b *Batch) Get(key string) int { return b.queue(opGet, key, nil, 0) }

// Count queues a [Table.Count].
func (b *Batch) Count(key string) int { return b.queue(opCount, key, nil, 0) }

// Put queues a [Table.Put]. value must not change until Run has returned.
func (b *Batch) Put(key string, value []byte) int { return b.queue(opPut, key, value, 0) }

// Add queues a [Table.Add].
func (b *Batch) Add(key string, delta uint64) int { return b.queue(opAdd, key, nil, delta) }

// Delete queues a [Table.Delete].
func (b *Batch) Delete(key string) int { return b.queue(opDelete, key, nil, 0) }

func (b *Batch) queue(kind opKind, key string, value []byte, delta uint64) int {
	n := len(b.ops)
	// What is behind the queued operations is zero, and too long to be copied there.
	if n == cap(b.ops) {
		b.ops = append(b.ops, operation{})
	} else {
		b.ops = b.ops[:n+1]
	}
	op := &b.ops[n]
	op.kind, op.key, op.value, op.delta = kind, key, value, delta
	return n
}

// Len is how many operations the batch has.
func (b *Batch) Len() int { return len(b.ops) }

// Result is what became of operation i, which has run.
func (b *Batch) Result(i int) Result {
	op := &b.ops[i]
	r := Result{Found: op.found, Count: op.count, Err: op.err}
	if op.kind == opGet && op.found {
		r.Value = slices.Clip(op.record)
	}
	return r
}

// Reset empties the batch for new operations, keeping its memory.
func (b *Batch) Reset() {
	b.renew()
	clear(b.ops)
	b.ops = b.ops[:0]
	b.ran, b.notes = 0, b.notes[:0]
	b.memory.reset()
}

// renew has a spoiled batch go on in other memory, with its results.
func (b *Batch) renew() {
	if !b.spoiled {
		return
	}
	b.spoiled = false
	ops := make([]operation, len(b.ops))
	for i := range b.ops {
		op := &b.ops[i]
		ops[i] = operation{kind: op.kind, key: op.key, found: op.found, count: op.count, record: op.record, err: op.err}
	}
	b.ops, b.memory = ops, arena{}
	b.makeLanes()
}

// Run runs the operations queued since the last Run and returns when all are complete,
// for every rank to see. Operations do not depend on each other: if some fail the
// others are carried out, and the error is that of the first one that failed, an
// *OpError.
func (b *Batch) Run(ctx context.Context) error {
	t := b.table
	if t.closed.Load() {
		return fmt.Errorf("hashtable: %w", ErrClosed)
	}
	if err := checkContext(ctx); err != nil {
		return fmt.Errorf("hashtable: Run: %w", err)
	}
	first := b.ran
	b.ran = len(b.ops)
	b.active = b.active[:0]
	for i := first; i < len(b.ops); i++ {
		op := &b.ops[i]
		op.home = t.home(op.key)
		op.step = stepBucket
		if length := len(op.key) + len(op.value); length > MaxEntryBytes {
			op.fail(b, fmt.Errorf("%w: key of %d bytes and value of %d, together at most %d", ErrTooLong, len(op.key), len(op.value), MaxEntryBytes))
			continue
		}
		b.active = append(b.active, int32(i))
	}
	b.known = t.reclaimer.freed.Load()
	b.carryOut(ctx, first)
	if b.hungry(first) {
		b.feed(ctx, first)
	}
	if len(b.notes) > 0 {
		b.tend(ctx)
	}
	t.operations.Add(uint64(len(b.ops) - first))
	if b.retries > 0 {
		t.retries.Add(b.retries)
		b.retries = 0
	}
	if b.combined > 0 {
		b.shareResults(first)
		t.combined.Add(b.combined)
		b.combined = 0
	}
	b.renew()
	for i := first; i < len(b.ops); i++ {
		if err := b.ops[i].err; err != nil {
			return err
		}
	}
	return nil
}

// carryOut carries out the active operations, announced. All from first on are of this Run.
func (b *Batch) carryOut(ctx context.Context, first int) {
	t := b.table
	word, err := t.enter(ctx, b.announced)
	if err != nil {
		for _, i := range b.active {
			b.ops[i].fail(b, err)
		}
		return
	}
	b.announced = word
	b.proceed(ctx)
	if b.spoiled {
		var owners []int
		for i := first; i < len(b.ops); i++ {
			if owner := b.ops[i].home.owner; !slices.Contains(owners, owner) {
				owners = append(owners, owner)
			}
		}
		t.leaveLater(word, owners)
	} else {
		t.leave(word)
	}
	if len(b.retired) > 0 {
		t.retire(ctx, b)
	}
}

// proceed carries out the active operations.
func (b *Batch) proceed(ctx context.Context) {
	b.runs++
	b.split()
	for i := range b.lanes {
		b.beginRound(ctx, i)
	}
	for len(b.lanes[0].active)+len(b.lanes[1].active) > 0 {
		for i := range b.lanes {
			b.endRound(ctx, &b.lanes[i])
			b.beginRound(ctx, i)
		}
	}
	b.direct(len(b.mapped))
}

// load gives a lane the next part of the active operations. Once the context has ended no other part is begun.
func (b *Batch) load(ctx context.Context, lane int) {
	if b.given > 0 && ctx.Err() != nil {
		for _, i := range b.active[b.given:] {
			b.ops[i].fail(b, context.Cause(ctx))
		}
		b.given = len(b.active)
	}
	part := b.active[b.given:min(b.given+b.part, len(b.active))]
	b.given += len(part)
	for _, i := range part {
		b.ops[i].lane = uint8(lane)
	}
	b.lanes[lane].active = append(b.lanes[lane].active, part...)
}

// hungry makes those of the operations from first on active again that had no record space or no slot, and
// notes what space they need.
func (b *Batch) hungry(first int) bool {
	b.active, b.starved = b.active[:0], b.starved[:0]
	if !b.lacking {
		return false
	}
	b.lacking = false
	for i := first; i < len(b.ops); i++ {
		var full *FullError
		if op := &b.ops[i]; errors.As(op.err, &full) {
			b.active = append(b.active, int32(i))
			if !full.Slots {
				b.starve(op.home.owner, op.pieceWords())
			}
		}
	}
	return len(b.active) > 0
}

// starve notes that an operation could not have a piece.
func (b *Batch) starve(owner, words int) {
	for i := range b.starved {
		if s := &b.starved[i]; s.owner == owner && s.words == words {
			s.times++
			return
		}
	}
	b.starved = append(b.starved, starvation{owner: owner, words: words, times: 1})
}

// feed tries again what had no record space or no slot, as long as there is hope for some.
func (b *Batch) feed(ctx context.Context, first int) {
	t := b.table
	since := t.world.Now()
	for {
		grown := b.makeSlots(ctx)
		if len(b.starved) > 0 && t.world.Now()-since <= 10*t.patience {
			t.refills.Add(1)
			grown = t.refill(ctx, b.starved, b.known, since) || grown
		}
		if !grown {
			return
		}
		for _, i := range b.active {
			op := &b.ops[i]
			*op = operation{kind: op.kind, key: op.key, value: op.value, delta: op.delta, home: op.home}
		}
		b.known = t.reclaimer.freed.Load()
		b.carryOut(ctx, first)
		if !b.hungry(first) {
			return
		}
	}
}

// arena is memory for buffers that live until it is reset.
type arena struct{ chunk []byte }

const arenaChunk = 64 << 10

func (a *arena) take(n int) []byte {
	if cap(a.chunk)-len(a.chunk) < n {
		a.chunk = make([]byte, 0, max(n, 2*cap(a.chunk), min(arenaChunk, 16*n)))
	}
	start := len(a.chunk)
	a.chunk = a.chunk[:start+n]
	return a.chunk[start : start+n : start+n]
}

func (a *arena) copy(bytes []byte) []byte {
	to := a.take(len(bytes))
	copy(to, bytes)
	return to
}

func (a *arena) reset() { a.chunk = a.chunk[:0] }
