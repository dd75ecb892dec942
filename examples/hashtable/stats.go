package hashtable

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/onesided/rma/window"
)

// Stats describes a rank's part of a table, and what this process has done.
type Stats struct {
	// Entries is how many there are, Deleted how many slots belong to keys that
	// were deleted and have not come back, and Slots how many there are in all.
	Entries, Deleted, Slots int
	// UsedBytes of RecordBytes were allocated. LiveBytes of these belong to entries.
	// The others belong to keys that were deleted, or wait in some rank to be used.
	LiveBytes, UsedBytes, RecordBytes int
	// WaitingBytes, of all ranks' record space, were retired by the rank and are not free yet.
	WaitingBytes int
	// FreeBytes, of all ranks' record space, are this process's own to use.
	FreeBytes int
	// Operations is how many this process has carried out on the table, Retries how often one of them
	// found a slot changed by another, and Refills how often Runs had to look for record space
	// among pieces that were used before.
	Operations, Retries, Refills uint64
}

// own adds what this process has done.
func (t *Table) own(stats *Stats) {
	for owner := range t.spaces {
		stats.FreeBytes += int(t.spaces[owner].idle.Load()) * wordBytes
	}
	stats.Operations, stats.Retries, stats.Refills = t.operations.Load(), t.retries.Load(), t.refills.Load()
}

// count counts a slot.
func (t *Table) count(stats *Stats, s slot) {
	switch {
	case !s.taken() || t.check(s) != nil:
	case s.live():
		stats.Entries++
		stats.LiveBytes += pieceWords(s.words()) * wordBytes
	default:
		stats.Deleted++
	}
}

func (t *Table) sizes() Stats {
	return Stats{Slots: t.buckets * bucketSlots, RecordBytes: t.recordWords * wordBytes}
}

// Stats looks through this rank's part of the table. What changes meanwhile is counted or
// not.
func (t *Table) Stats() Stats {
	stats := t.sizes()
	if t.closed.Load() {
		return stats
	}
	for s := range t.localSlots() {
		t.count(&stats, s)
	}
	stats.UsedBytes = t.usedBytes(atomic.LoadUint64(&t.local[tailWord]))
	stats.WaitingBytes = int(atomic.LoadUint64(&t.local[waitingWord])) * wordBytes
	t.own(&stats)
	return stats
}

func (t *Table) usedBytes(tail uint64) int { return int(min(tail, uint64(t.recordWords))) * wordBytes }

// StatsOf looks through the part of any rank, as Stats through this one's. It reads all of its slots.
func (t *Table) StatsOf(ctx context.Context, rank int) (Stats, error) {
	stats := t.sizes()
	err := t.checkOwner(rank)
	if err == nil {
		err = t.eachSlot(ctx, rank, func(_ int, s slot) { t.count(&stats, s) })
	}
	var tail, waiting uint64
	if err == nil {
		err = t.words.FetchAndOp(window.NoOp, 0, &tail, rank, tailWord)
	}
	if err == nil {
		err = t.words.FetchAndOp(window.NoOp, 0, &waiting, rank, waitingWord)
	}
	if err == nil {
		err = t.words.Flush(ctx, rank)
	}
	if err != nil {
		return Stats{}, fmt.Errorf("hashtable: StatsOf rank %d: %w", rank, err)
	}
	stats.UsedBytes, stats.WaitingBytes = t.usedBytes(tail), int(waiting)*wordBytes
	t.own(&stats)
	return stats, nil
}

func (t *Table) checkOwner(rank int) error {
	switch {
	case t.closed.Load():
		return ErrClosed
	case rank < 0 || rank >= t.size:
		return fmt.Errorf("%w: ranks 0 to %d own entries", window.ErrRank, t.size-1)
	}
	return nil
}

// bucketsAtOnce is how many are read together.
const bucketsAtOnce = 16

// eachSlot calls do for the slots of a rank, with their numbers.
func (t *Table) eachSlot(ctx context.Context, rank int, do func(number int, s slot)) error {
	for first := 0; first < t.buckets; first += bucketsAtOnce {
		slots, err := t.readSlots(ctx, rank, first)
		if err != nil {
			return err
		}
		for i, s := range slots {
			do(first*bucketSlots+i, slot(s))
		}
	}
	return nil
}

// readSlots reads the slots of some buckets of a rank, from first on.
func (t *Table) readSlots(ctx context.Context, rank, first int) ([]uint64, error) {
	slots := make([]uint64, min(bucketsAtOnce, t.buckets-first)*bucketSlots)
	err := t.words.GetAccumulate(window.NoOp, nil, slots, rank, t.bucketStart(first))
	if err == nil {
		err = t.words.Flush(ctx, rank)
	}
	return slots, err
}
