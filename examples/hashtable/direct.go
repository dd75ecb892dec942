package hashtable

import (
	"sync/atomic"

	"github.com/onesided/rma/internal/prefetch"
)

// Where the owner's memory is mapped in this process an operation needs no window: its steps
// are done by the processor, by atomics that are in one order with the window's, each as soon
// as it is known. The records of a few operations are looked for together, so that the
// processor fetches them at once.

// directGroup is how many operations are carried out together, and directGroups how many groups between two looks at what
// a batch waits for: over a network a look is a system call, which takes as long as some operations.
const (
	directGroup  = 16
	directGroups = 2
)

// shared is an owner's memory, as words and as the same bytes.
type shared struct {
	words []uint64
	bytes []byte
}

// sharedOf is the memory of a rank, if it is mapped and has not failed.
func (t *Table) sharedOf(rank int) (m shared, ok bool) {
	if m.words, ok = t.words.Mapped(rank); !ok {
		return m, false
	}
	m.bytes, ok = t.bytes.Mapped(rank)
	return m, ok
}

// A runMemory is the memory of a rank as a batch has found it in carryOut number run, if mapped.
type runMemory struct {
	run    uint64
	mapped bool
	shared
}

// memoryOf is the memory of a rank, nil if it was not mapped, or the rank had failed, when this carryOut first had
// to do with it. What is mapped stays so while the table is open.
func (b *Batch) memoryOf(rank int) *shared {
	m := &b.memories[rank]
	if m.run != b.runs {
		m.run = b.runs
		m.shared, m.mapped = b.table.sharedOf(rank)
	}
	if !m.mapped {
		return nil
	}
	return &m.shared
}

// A mappedOperation is one that direct carries out, and its owner's memory.
type mappedOperation struct {
	index int32
	*shared
}

// split takes those of the active operations out whose owners' memory is mapped, and divides the others, combined, into parts.
func (b *Batch) split() {
	left := b.active[:0]
	b.mapped, b.directed = b.mapped[:0], 0
	for _, i := range b.active {
		if b.memoryOf(b.ops[i].home.owner) == nil {
			left = append(left, i)
		} else {
			b.mapped = append(b.mapped, i)
		}
	}
	b.active = left
	b.combine()
	n := len(b.active)
	parts := max(min(2*n/b.table.part, len(b.lanes)), n/b.table.part, 1)
	b.given, b.part = 0, (n+parts-1)/parts
}

// direct carries out some groups of the operations whose owners' memory is mapped, and tells whether there are more.
func (b *Batch) direct(groups int) (more bool) {
	t := b.table
	for ; groups > 0 && b.directed < len(b.mapped); groups-- {
		some := b.mapped[b.directed:min(b.directed+directGroup, len(b.mapped))]
		b.directed += len(some)
		n := 0
		for _, i := range some {
			op := &b.ops[i]
			m := b.memoryOf(op.home.owner)
			if b.locateIn(op, m); op.step == stepDone {
				continue
			}
			if place := b.slotPlace(op); op.kind == opPut {
				t.fetchToWrite(m, place, bucketSlots)
			} else {
				t.fetch(m, place, bucketSlots)
			}
			b.takeEarly(op, m)
			b.group[n] = mappedOperation{i, m}
			n++
		}
		b.directly(b.group[:n])
	}
	return b.directed < len(b.mapped)
}

// directly carries out a group.
func (b *Batch) directly(group []mappedOperation) {
	for len(group) > 0 {
		still := group[:0]
		for i := range group {
			member := &group[i]
			op := &b.ops[member.index]
			if b.do(op, member.shared); op.step != stepDone {
				still = append(still, *member)
			}
		}
		group = still
	}
}

// fetch has the processor begin to fetch some words.
func (t *Table) fetch(m *shared, place, words int) {
	if !t.ahead {
		return
	}
	for at := place; at < place+words; at = at&^(lineWords-1) + lineWords {
		prefetch.Element(&m.words[at])
	}
}

// fetchToWrite is fetch for words that are to be written.
func (t *Table) fetchToWrite(m *shared, place, words int) {
	if !t.ahead {
		return
	}
	for at := place; at < place+words; at = at&^(lineWords-1) + lineWords {
		prefetch.ElementToWrite(&m.words[at])
	}
}

// do carries out the operation's step, and those after it up to one that reads memory
// elsewhere.
func (b *Batch) do(op *operation, m *shared) {
	t := b.table
	switch op.step {
	case stepBucket:
		if b.locateIn(op, m); op.step == stepDone {
			return
		}
		slots := m.words[b.slotPlace(op):][:bucketSlots]
		for i := range slots {
			op.slots[i] = atomic.LoadUint64(&slots[i])
		}
	case stepRecord:
		b.refer(op, m)
	case stepAdd:
		op.word = atomic.AddUint64(&m.words[t.recordStart()+op.current.place()], op.delta) - op.delta
	case stepSpace, stepWrite, stepSwap, stepBar, stepCarry, stepLeave:
		b.publishTo(op, m)
		return
	}
	b.advance(op)
	if op.step == stepRecord {
		t.fetch(m, t.recordStart()+op.current.place(), op.current.words())
	}
}

// takeEarly gives a Put the space for its record, which it needs whatever it finds, if this rank has some: so that is
// fetched until the record is written.
func (b *Batch) takeEarly(op *operation, m *shared) {
	if op.kind != opPut || op.own.words > 0 {
		return
	}
	t, words := b.table, op.pieceWords()
	if place, ok := t.spaces[op.home.owner].take(words); ok {
		b.own(op, piece{place, words})
		t.fetchToWrite(m, t.recordStart()+place, words)
	}
}

// refer makes the record in the owner's memory the operation's; it is compared there. Of
// what a Get finds the value is copied then.
func (b *Batch) refer(op *operation, m *shared) {
	t, s := b.table, op.current
	start := t.recordStart() + s.place()
	op.record = m.bytes[start*wordBytes+s.prefix() : (start+s.words())*wordBytes]
	op.mapped = true
	if op.kind == opCount && s.counter() {
		op.word = atomic.LoadUint64(&m.words[start])
	}
}

// publishTo allocates and writes the operation's record, if it needs one, and sets the slot.
func (b *Batch) publishTo(op *operation, m *shared) {
	t := b.table
	if op.step == stepSpace {
		if !b.allocate(op, m) {
			return
		}
		op.step = stepWrite
	}
	if op.step == stepWrite {
		start, words := t.recordStart()+op.own.place, op.recordWords()
		if raced {
			record := b.memory.take(words * wordBytes)
			op.encode(record)
			storeWords(m.words[start:], record)
		} else {
			op.encode(m.bytes[start*wordBytes:][:words*wordBytes])
		}
		op.step, op.written = stepSwap, true
	}
	place, known, to := b.swapOf(op)
	word := &m.words[place]
	for op.word = uint64(known); !atomic.CompareAndSwapUint64(word, uint64(known), uint64(to)); {
		if op.word = atomic.LoadUint64(word); op.word != uint64(known) {
			break
		}
	}
	b.advance(op)
}

// allocate gives the operation space for its record, or fails it.
func (b *Batch) allocate(op *operation, m *shared) bool {
	t := b.table
	words, err := b.findSpace(op)
	if err != nil {
		op.fail(b, err)
		return false
	}
	if words == 0 {
		return true
	}
	space := &t.spaces[op.home.owner]
	tail := atomic.AddUint64(&m.words[tailWord], uint64(words)) - uint64(words)
	got := space.added(int(min(tail, uint64(t.recordWords))), words, t.recordWords)
	if got.words < words {
		op.fail(b, b.full(op, words, t.recordWords-got.words))
		if got.words > 0 {
			space.keep(got)
		}
		return false
	}
	b.own(op, got)
	space.use(words)
	return true
}
