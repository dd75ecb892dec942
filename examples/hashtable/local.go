package hashtable

import (
	"bytes"
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

// Local ranges over the entries that this rank owns, in no order. Entries that come, go or
// change meanwhile are seen before or after that; no key is seen twice. It must be
// over before Close.
func (t *Table) Local() iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		for s := range t.localSlots() {
			if !s.live() {
				continue
			}
			key, value, err := t.localEntry(s)
			if err == nil && !yield(key, value) {
				return
			}
		}
	}
}

// localSlots ranges over the taken slots of this rank. They are loaded by the
// processor's atomics, which is one order with the window's.
func (t *Table) localSlots() iter.Seq[slot] {
	return func(yield func(slot) bool) {
		if t.closed.Load() {
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

// localEntry copies an entry of this rank.
func (t *Table) localEntry(s slot) (string, Value, error) {
	start := t.recordStart() + s.place()
	record := t.bytes.Local()[start*wordBytes+s.prefix() : (start+s.words())*wordBytes]
	keyLength, valueLength, err := s.lengths(record)
	if err != nil {
		return "", Value{}, err
	}
	rest := record[lengthsBytes:]
	key := string(rest[:keyLength])
	if s.counter() {
		return key, Value{Counter: true, Count: atomic.LoadUint64(&t.words.Local()[start])}, nil
	}
	return key, Value{Bytes: bytes.Clone(rest[keyLength : keyLength+valueLength])}, nil
}

// Stats describes this rank's part of a table.
type Stats struct {
	// Entries is how many there are, Deleted how many slots belong to keys that
	// were deleted and have not come back, and Slots how many there are in all.
	Entries, Deleted, Slots int
	// UsedBytes of RecordBytes are allocated. LiveBytes of these belong to entries.
	// The others were left behind when entries were replaced or deleted, or wait
	// in some rank to be used.
	LiveBytes, UsedBytes, RecordBytes int
}

// Stats looks through this rank's part of the table. What changes meanwhile is counted or
// not.
func (t *Table) Stats() Stats {
	stats := Stats{Slots: t.buckets * bucketSlots, RecordBytes: t.recordWords * wordBytes}
	if t.closed.Load() {
		return stats
	}
	for s := range t.localSlots() {
		if s.live() {
			stats.Entries++
			stats.LiveBytes += s.words() * wordBytes
		} else {
			stats.Deleted++
		}
	}
	used := atomic.LoadUint64(&t.words.Local()[tailWord])
	stats.UsedBytes = int(min(used, uint64(t.recordWords))) * wordBytes
	return stats
}
