package hashtable

import (
	"bytes"
	"context"
	"iter"
	"sync/atomic"
)

// A Value is a counter or bytes.
type Value struct {
	// Counter tells that Count is the value, else Bytes is.
	Counter bool
	Count   uint64
	Bytes   []byte
}

// Local ranges over the entries that this rank owns, in no order. No key is seen twice,
// and every one that is there all the time is seen. Entries that come, go or change
// meanwhile are seen as they were at some moment of the range, or not: some are read
// ahead. It must be over before Close.
func (t *Table) Local() iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		var ahead entries
		if t.closed.Load() || t.visits {
			return
		}
		words := t.local[t.bucketStart(0):t.recordStart()]
		for i := range words {
			if !slot(atomic.LoadUint64(&words[i])).live() {
				continue
			}
			if t.readSlot(&ahead, &words[i]); ahead.full() && !ahead.yield(yield) {
				return
			}
		}
		ahead.yield(yield)
	}
}

// entries are some that have been read and not been seen. They are read together because
// records are anywhere in memory, so that the processor fetches several at once, and
// because their keys can share an allocation.
type entries struct {
	keys   []byte
	ends   []int
	values []Value
}

const (
	mostEntries  = 64
	mostKeyBytes = 4 << 10
)

func (e *entries) full() bool { return len(e.ends) >= mostEntries || len(e.keys) >= mostKeyBytes }

// yield empties e.
func (e *entries) yield(yield func(string, Value) bool) bool {
	keys, start := string(e.keys), 0
	for i, end := range e.ends {
		if !yield(keys[start:end], e.values[i]) {
			return false
		}
		start = end
	}
	clear(e.values)
	e.keys, e.ends, e.values = e.keys[:0], e.ends[:0], e.values[:0]
	return true
}

// localSlots ranges over the taken slots of this rank, but for those that no operation
// of a table has left. They are loaded by the processor's atomics, which is one order with
// the window's.
func (t *Table) localSlots() iter.Seq[slot] {
	return func(yield func(slot) bool) {
		if t.closed.Load() || t.visits {
			return
		}
		words := t.words.Local()[t.bucketStart(0):t.recordStart()]
		for i := range words {
			if s := slot(atomic.LoadUint64(&words[i])); s.taken() && t.check(s) == nil && !yield(s) {
				return
			}
		}
	}
}

// readSlot copies the entry that a slot of this rank has, announced, so that its record is not
// used again meanwhile.
func (t *Table) readSlot(to *entries, word *uint64) {
	announced, err := t.enter(context.Background(), 0)
	if err != nil {
		return
	}
	defer t.leave(announced)
	if s := slot(atomic.LoadUint64(word)); s.live() && t.check(s) == nil {
		t.readLocal(to, s)
	}
}

// readLocal copies an entry of this rank. Its record is complete: it was put and flushed
// before the slot was set.
func (t *Table) readLocal(to *entries, s slot) {
	start := t.recordStart() + s.place()
	record := t.bytes.Local()[start*wordBytes+s.prefix() : (start+s.words())*wordBytes]
	count := uint64(0)
	if s.counter() {
		count = atomic.LoadUint64(&t.words.Local()[start])
	}
	to.add(s, record, count)
}

// add adds the entry of a slot, whose record was read from the word of lengths on, unless that is none.
func (e *entries) add(s slot, record []byte, count uint64) {
	keyLength, valueLength, err := s.lengths(record)
	if err != nil {
		return
	}
	rest := record[lengthsBytes:]
	value := Value{Counter: s.counter(), Count: count}
	if !value.Counter {
		value.Bytes = bytes.Clone(rest[keyLength : keyLength+valueLength])
	}
	e.keys = append(e.keys, rest[:keyLength]...)
	e.ends = append(e.ends, len(e.keys))
	e.values = append(e.values, value)
}
