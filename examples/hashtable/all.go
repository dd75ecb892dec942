package hashtable

import (
	"context"
	"fmt"
	"iter"

	"github.com/onesided/rma/window"
)

// All ranges over the entries of all ranks, in no order, and tells with failed why it has ended before
// it has seen all: the context's end, or that a rank has failed. No key is seen twice, and every one that is there all the
// time is seen. Entries that come, go or change meanwhile are seen as they were at some moment of the range, or not: some
// are read ahead. It must be over before Close.
//
//	entries, failed := table.All(ctx)
//	for key, value := range entries {
//		...
//	}
//	if err := failed(); err != nil {
func (t *Table) All(ctx context.Context) (entries iter.Seq2[string, Value], failed func() error) {
	var err error
	entries = func(yield func(string, Value) bool) {
		err = nil
		for i := range t.size {
			// Who begins at itself does not read the same rank as all others.
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

// allOf ranges over the entries of one rank.
func (t *Table) allOf(ctx context.Context, owner int, yield func(string, Value) bool) (more bool, err error) {
	if err := t.checkOwner(owner); err != nil {
		return false, err
	}
	var ahead entries
	for first := 0; first < t.buckets; first += bucketsAtOnce {
		if err := t.readBuckets(ctx, &ahead, owner, first); err != nil {
			return false, err
		}
		if !ahead.yield(yield) {
			return false, nil
		}
	}
	return true, nil
}

// readBuckets reads the entries of some buckets, announced, so that their records are not used again meanwhile.
func (t *Table) readBuckets(ctx context.Context, to *entries, owner, first int) error {
	word, err := t.enter(ctx, 0)
	if err != nil {
		return err
	}
	left := false
	defer func() {
		if left {
			t.leave(word)
		} else {
			// What was asked for may yet be read.
			t.leaveLater(word, []int{owner})
		}
	}()
	slots, err := t.readSlots(ctx, owner, first)
	if err != nil {
		return err
	}
	live := make([]slot, 0, len(slots))
	for _, s := range slots {
		if s := slot(s); s.live() && t.check(s) == nil {
			live = append(live, s)
		}
	}
	records, counts := make([][]byte, len(live)), make([]uint64, len(live))
	for i, s := range live {
		records[i] = make([]byte, s.words()*wordBytes-s.prefix())
		if err := t.bytes.Get(records[i], owner, (t.recordStart()+s.place())*wordBytes+s.prefix()); err != nil {
			return err
		}
		if s.counter() {
			if err := t.words.FetchAndOp(window.NoOp, 0, &counts[i], owner, t.recordStart()+s.place()); err != nil {
				return err
			}
		}
	}
	if err := t.words.Flush(ctx, owner); err != nil {
		return err
	}
	left = true
	for i, s := range live {
		to.add(s, records[i], counts[i])
	}
	return nil
}
