package hashtable

import (
	"sync/atomic"

	// Not for programs outside of this module: leave the calls out.
	"github.com/onesided/rma/internal/prefetch"
)

// If the owner's memory is mapped in this process, an operation needs no call of the window. The processor carries
// out its steps, each as soon as it is known. Its atomics are in one order with those of the window. The records of a
// few operations are looked up together, so that the processor fetches them at once.

// directGroup is the number of operations that are carried out together. directGroups is the number of groups between
// two polls of the request for which a batch waits. Over a network a poll is a system call, which takes as long as
// several operations.
const (
	directGroup  = 16
	directGroups = 2
)

// shared is the memory of an owner, as words and as the same bytes.
type shared struct {
	words []uint64
	bytes []byte
}

// sharedOf returns the memory of a rank, if it is mapped and the rank has not failed.
func (t *Table) sharedOf(rank int) (m shared, ok bool) {
	if m.words, ok = t.words.Mapped(rank); !ok {
		return m, false
	}
	m.bytes, ok = t.bytes.Mapped(rank)
	return m, ok
}

// A runMemory is the memory of a rank as carryOut number run of a batch found it.
type runMemory struct {
	run    uint64
	mapped bool
	shared
}

// memoryOf returns the memory of a rank. It returns nil if the memory was not mapped, or the rank had failed, when
// this carryOut first used it. Mapped memory stays mapped while the table is open.
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

// A mappedOperation is an operation for direct, with the memory of its owner.
type mappedOperation struct {
	index int32
	*shared
}

// split moves the operations whose owners' memory is mapped from active to mapped. It combines the others and divides
// them into parts.
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

// direct carries out some groups of the mapped operations and reports whether more are left.
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

// fetch starts to prefetch words.
func (t *Table) fetch(m *shared, place, words int) {
	if !t.prefetches {
		return
	}
	for at := place; at < place+words; at = at&^(lineWords-1) + lineWords {
		prefetch.Element(&m.words[at])
	}
}

// fetchToWrite is like fetch, for words that will be written.
func (t *Table) fetchToWrite(m *shared, place, words int) {
	if !t.prefetches {
		return
	}
	for at := place; at < place+words; at = at&^(lineWords-1) + lineWords {
		prefetch.ElementToWrite(&m.words[at])
	}
}

// do carries out the operation's step and the following ones, until one reads memory elsewhere.
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
	case stepSpace, stepWrite, stepSwap, stepClose, stepCopy, stepMark:
		b.publishTo(op, m)
		return
	}
	b.advance(op)
	if op.step == stepRecord {
		t.fetch(m, t.recordStart()+op.current.place(), op.current.words())
	}
}

// takeEarly allocates the record of a Put from this rank's own space, if it has some. A Put needs a record whatever
// it finds. The memory is prefetched until the record is written.
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

// refer makes the record in the owner's memory the operation's record; it is compared in place. For Count it reads
// the counter.
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

// allocate gives the operation space for its record, or fails the operation.
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
