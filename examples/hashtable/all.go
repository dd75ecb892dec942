package hashtable

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/onesided/rma/window"
)

// Local ranges over the entries that this rank owns, in no order. It yields no key twice, and yields every key that
// is there all the time. Entries that are added, removed or changed meanwhile appear as they were at some moment of
// the range, or not at all: some are read ahead. The range must end before Close.
func (t *Table) Local() iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		if !t.isClient {
			// A rank can always read its own memory.
			_, _ = t.allOf(context.Background(), t.world.Rank(), yield)
		}
	}
}

// All ranges over the entries of all ranks, in no order. Call failed after the range: it returns an error if the
// range ended before all entries were read, because the context ended or a rank failed.
//
//	entries, failed := table.All(ctx)
//	for key, value := range entries {
//		...
//	}
//	if err := failed(); err != nil {
//
// All yields no key twice, and yields every key that is there all the time. Entries that are added, removed or
// changed meanwhile appear as they were at some moment of the range, or not at all: some are read ahead. The range
// must end before Close.
func (t *Table) All(ctx context.Context) (entries iter.Seq2[string, Value], failed func() error) {
	err := checkContext(ctx)
	if err != nil {
		err = fmt.Errorf("hashtable: All: %w", err)
		return func(func(string, Value) bool) {}, func() error { return err }
	}
	entries = func(yield func(string, Value) bool) {
		err = nil
		for i := range t.size {
			// Each rank begins at itself, so that not all ranks read the same one.
			owner := (t.world.Rank() + i) % t.size
			var more bool
			if more, err = t.allOf(ctx, owner, yield); err != nil {
				err = fmt.Errorf("hashtable: All at rank %d: %w", owner, err)
			}
			if !more || err != nil {
				return
			}
		}
	}
	return entries, func() error { return err }
}

// A position is the number of home buckets that have been read, in an index of some level. In an index of twice the
// buckets the keys of these homes have twice as many home buckets.
type position struct{ bucket, level int }

// in returns the next home buckets in an owner's current index, at most most of them.
func (p position) in(current control, x index, most int) (first, end int) {
	first = min(p.bucket<<max(0, current.level()-p.level), x.buckets)
	return first, min(first+most, x.buckets)
}

// allOf ranges over the entries of one rank, some home buckets at a time.
func (t *Table) allOf(ctx context.Context, owner int, yield func(string, Value) bool) (more bool, err error) {
	if err := t.checkOwner(owner); err != nil {
		return false, err
	}
	r := reading{table: t, owner: owner, most: bucketsAtOnce}
	var at position
	for tries, over := 0, false; !over; {
		var outdated bool
		err := t.during(ctx, owner, func(v view) (err error) {
			outdated, over, err = r.next(ctx, v, &at)
			return err
		})
		if err != nil {
			return false, err
		}
		if tries++; !outdated {
			tries = 0
		} else if tries > mostRestarts {
			return false, fmt.Errorf("%w: rank %d has slots that were left", ErrCorrupt, owner)
		}
		if !r.yield(yield) {
			return false, nil
		}
	}
	return true, nil
}

// A Value is a counter or bytes.
type Value struct {
	// Counter reports whether the value is Count. Otherwise it is Bytes.
	Counter bool
	Count   uint64
	Bytes   []byte
}

// A reading is the entries of an owner that are read together.
type reading struct {
	table *Table
	owner int
	// most is the number of home buckets that are read together. It grows while the records are short enough, because
	// a caller that stops does so early.
	most int
	// first and end are the range of home buckets.
	first, end int
	slots      []uint64
	// records are the records of slots, and counts their counters. block is memory for records; values stay in it.
	records [][]byte
	counts  []uint64
	block   []byte
	found   []found
	keys    map[string]int
}

// blockBytes is the length of a block. A program that keeps one short value keeps about that much memory.
const blockBytes = 16 << 10

// room returns memory for a record.
func (r *reading) room(bytes int) []byte {
	if bytes > len(r.block) {
		r.block = make([]byte, max(bytes, blockBytes))
	}
	room := r.block[:bytes:bytes]
	r.block = r.block[bytes:]
	return room
}

// found is an entry.
type found struct {
	key   string
	value Value
}

// next reads the entries of the next home buckets. It reports outdated if keys have moved away from the index in
// which it looked. The caller is announced.
func (r *reading) next(ctx context.Context, v view, at *position) (outdated, over bool, err error) {
	r.found = r.found[:0]
	current, level := r.table.indexOf(v.current), v.current.level()
	first, end := at.in(v.current, current, r.most)
	left, err := r.read(ctx, current, first, end)
	if err != nil {
		return false, false, err
	}
	if left && !v.moving() {
		r.found = r.found[:0]
		return true, false, nil
	}
	if left {
		before := slices.Clone(r.found)
		next := r.table.indexOf(v.next)
		factor := next.buckets / current.buckets
		r.found = r.found[:0]
		if left, err = r.read(ctx, next, first*factor, end*factor); err != nil || left {
			r.found = r.found[:0]
			return left, false, err
		}
		r.merge(before)
	}
	*at = position{end, level}
	r.pace()
	return false, end >= current.buckets, nil
}

// A reading has at most mostTogether buckets. The next one has twice as many if the records have fewer bytes than
// enoughRead, and half as many if they have more than mostRead.
const (
	mostTogether = 1 << 10
	enoughRead   = 256 << 10
	mostRead     = 1 << 20
)

// pace sets the number of buckets of the next reading.
func (r *reading) pace() {
	bytes := 0
	for i := range r.found {
		bytes += len(r.found[i].key) + len(r.found[i].value.Bytes)
	}
	switch {
	case bytes < enoughRead:
		r.most = min(2*r.most, mostTogether)
	case bytes > mostRead:
		r.most = max(r.most/2, 1)
	}
}

// merge adds the entries that were found in the previous index, except for keys that are found in the next one.
func (r *reading) merge(before []found) {
	if r.keys == nil {
		r.keys = make(map[string]int)
	}
	clear(r.keys)
	for i := range r.found {
		r.keys[r.found[i].key] = i
	}
	for _, f := range before {
		if _, moved := r.keys[f.key]; !moved {
			r.found = append(r.found, f)
		}
	}
}

// read reads the entries of an index whose homes are the buckets from first to end. It goes on to the first empty
// slot after these. It reports left if it met slots that keys have left or are about to leave.
func (r *reading) read(ctx context.Context, x index, first, end int) (left bool, err error) {
	r.first, r.end = first, end
	r.slots = r.slots[:0]
	for open := true; open && len(r.slots) < x.buckets*bucketSlots; {
		from := first + len(r.slots)/bucketSlots
		n := max(end-from, 1)
		if from >= end {
			n = min(bucketsAtOnce, first+x.buckets-from)
		}
		if from >= x.buckets {
			from -= x.buckets
		}
		n = min(n, x.buckets-from)
		r.slots = slices.Grow(r.slots, n*bucketSlots)[:len(r.slots)+n*bucketSlots]
		if err := r.table.readSlots(ctx, r.owner, x.place(from, 0, 0), r.slots[len(r.slots)-n*bucketSlots:]); err != nil {
			return false, err
		}
		for i := max(len(r.slots)-n*bucketSlots, (end-first)*bucketSlots); i < len(r.slots); i++ {
			if s := slot(r.slots[i]); s == 0 || s == slotClosed {
				left = s == slotClosed
				r.slots = r.slots[:i]
				open = false
				break
			}
		}
	}
	live := r.slots[:0]
	for _, s := range r.slots {
		left = left || slot(s).frozen()
		if slot(s).live() && r.table.check(slot(s)) == nil {
			live = append(live, s)
		}
	}
	return left, r.readRecords(ctx, x, live)
}

// readRecords adds the entries of slots whose homes are in the range.
func (r *reading) readRecords(ctx context.Context, x index, live []uint64) error {
	t := r.table
	r.records = r.records[:0]
	r.counts = slices.Grow(r.counts[:0], len(live))[:len(live)]
	for i, s := range live {
		s := slot(s)
		start := t.recordStart() + s.place()
		record := r.room(s.recordBytes())
		if err := t.bytes.Get(record, r.owner, start*wordBytes+s.prefix()); err != nil {
			return err
		}
		r.records = append(r.records, record)
		if s.counter() {
			if err := t.words.FetchAndOp(window.NoOp, 0, &r.counts[i], r.owner, start); err != nil {
				return err
			}
		}
	}
	if err := t.words.Flush(ctx, r.owner); err != nil {
		return err
	}
	for i, s := range live {
		s, record := slot(s), r.records[i]
		keyLength, valueLength, err := s.lengths(record)
		if err != nil {
			continue
		}
		record = record[lengthsBytes:]
		f := found{key: string(record[:keyLength])}
		home := t.home(f.key)
		if bucket := x.bucket(home.low); home.owner != r.owner || bucket < r.first || bucket >= r.end {
			continue
		}
		if s.counter() {
			f.value = Value{Counter: true, Count: r.counts[i]}
		} else {
			f.value.Bytes = record[keyLength : keyLength+valueLength : keyLength+valueLength]
		}
		r.found = append(r.found, f)
	}
	return nil
}

// yield passes the entries that were found to the range.
func (r *reading) yield(yield func(string, Value) bool) bool {
	for _, f := range r.found {
		if !yield(f.key, f.value) {
			return false
		}
	}
	return true
}
