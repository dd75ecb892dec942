package hashtable

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/onesided/rma/window"
)

// A Batch is a list of operations that run together. It may be used by one goroutine at a time.
//
//	batch := table.NewBatch()
//	for word, n := range counts {
//		batch.Add(word, n)
//	}
//	err := batch.Run(ctx)
//	...
//	batch.Reset()
//
// Its operations are concurrent: operations on one key take effect in any order, each as a whole. A thousand
// operations are enough to hide latencies.
type Batch struct {
	table *Table
	ops   []operation
	// ran is the number of ops that have been run.
	ran    int
	active []int32
	// given is the number of active operations that lanes have been given, in parts of part operations.
	given, part int
	memory      arena
	// mapped lists the operations whose owners' memory is mapped; the first directed of them are done. memories[r] is
	// the memory of rank r. group holds the operations that direct does together.
	mapped   []int32
	directed int
	memories []runMemory
	group    [directGroup]mappedOperation

	lanes [2]lane
	// leaders is the table in which combine looks for an operation to follow. combined counts the followers of this
	// Run.
	leaders  []int32
	combined uint64
	// spoiled is set when the window returned an error in this Run. The library may then still own buffers of
	// operations that were not completed.
	spoiled bool
	// announced is the announcement of the last Run. retired lists the pieces to which no slot has referred since.
	announced int
	retired   []retired
	// short lists what the operations of the last Run lack, if isShort is set.
	short   []shortage
	isShort bool
	// runs numbers the calls of proceed. notes are observations of this Run about owners' indexes.
	runs  uint64
	notes []note
	// retries counts the retries of this Run.
	retries uint64
	// known is the number of pieces that had been freed before the last Run found what it lacks.
	known uint64
}

// shortage describes pieces that operations could not get. If words is 0 it stands for the block of the index that
// follows the one named by known.
type shortage struct {
	owner, words, times int
	known               control
}

// A lane is a set of operations of a Run that go through rounds together. There are two lanes: the round of one is on
// its way while the results of the other are processed. In a large batch a lane takes a part of the operations and,
// when these are done, the next part.
type lane struct {
	active []int32
	// owners[r] is the state of rank r in the current round. touched lists the ranks that have operations.
	owners  []ownerRound
	touched []int32
	// views[r] is the view of rank r's indexes that the lane has read.
	views []runView
}

// ownerRound is the state of one rank in a round.
type ownerRound struct {
	touched bool
	flush   window.Request
	err     error
	// need is the number of record words that the round allocates. tail receives the result, and is reused by later
	// rounds, except after an error.
	need int
	tail *uint64
	got  piece
}

// A Result is the outcome of an operation.
type Result struct {
	// Found reports whether the key was there before.
	Found bool
	// Value is the value that Get found. It is valid until Reset. Do not change it: several Gets of one key may share
	// it.
	Value []byte
	// Count is the counter that Count found, or the sum after Add.
	Count uint64
	// Err is an *OpError, or nil.
	Err error
}

// NewBatch returns an empty batch.
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

// Get queues a [Table.Get] and returns its number, to be passed to Result. The other methods do so likewise.
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
	// Elements after the queued operations are zero already, and an operation is long to copy.
	if n == cap(b.ops) {
		b.ops = append(b.ops, operation{})
	} else {
		b.ops = b.ops[:n+1]
	}
	op := &b.ops[n]
	op.kind, op.key, op.value, op.delta = kind, key, value, delta
	return n
}

// Len returns the number of operations in the batch.
func (b *Batch) Len() int { return len(b.ops) }

// Result returns the outcome of operation i, which must have run.
func (b *Batch) Result(i int) Result {
	op := &b.ops[i]
	r := Result{Found: op.found, Count: op.count, Err: op.err}
	if op.kind == opGet && op.found {
		r.Value = slices.Clip(op.record)
	}
	return r
}

// Reset empties the batch for new operations. It keeps the memory.
func (b *Batch) Reset() {
	b.renew()
	clear(b.ops)
	b.ops = b.ops[:0]
	b.ran, b.notes = 0, b.notes[:0]
	b.memory.reset()
}

// renew moves a spoiled batch, with its results, to other memory.
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

// Run runs the operations queued since the last Run. It returns when all are complete and visible to every rank.
// Operations do not depend on each other: if some fail, the others are carried out. The error is that of the first
// operation that failed, an *OpError.
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
	if b.collectShort(first) {
		b.retryShort(ctx, first)
	}
	if len(b.notes) > 0 {
		b.maintain(ctx)
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

// carryOut carries out the active operations within an announcement. The operations from first on belong to this Run.
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

// load gives a lane the next part of the active operations. After the context has ended it starts no further part.
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

// collectShort collects the operations from first on that found no record space or no slot. It makes them active
// again and notes the space that they need.
func (b *Batch) collectShort(first int) bool {
	b.active, b.short = b.active[:0], b.short[:0]
	if !b.isShort {
		return false
	}
	b.isShort = false
	for i := first; i < len(b.ops); i++ {
		var full *FullError
		if op := &b.ops[i]; errors.As(op.err, &full) {
			b.active = append(b.active, int32(i))
			if !full.Slots {
				b.noteShortage(op.home.owner, op.pieceWords())
			}
		}
	}
	return len(b.active) > 0
}

// noteShortage notes that an operation found no piece of this size.
func (b *Batch) noteShortage(owner, words int) {
	for i := range b.short {
		if s := &b.short[i]; s.owner == owner && s.words == words {
			s.times++
			return
		}
	}
	b.short = append(b.short, shortage{owner: owner, words: words, times: 1})
}

// retryShort retries the operations that found no record space or no slot, while there is hope for some of them.
func (b *Batch) retryShort(ctx context.Context, first int) {
	t := b.table
	since := t.world.Now()
	for {
		grown := b.makeSlots(ctx)
		if len(b.short) > 0 && t.world.Now()-since <= 10*t.patience {
			t.refills.Add(1)
			grown = t.refill(ctx, b.short, b.known, since) || grown
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
		if !b.collectShort(first) {
			return
		}
	}
}

// An arena is memory for buffers that live until it is reset.
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
