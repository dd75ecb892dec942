package hashtable

import (
	"cmp"
	"context"
	"fmt"

	"github.com/onesided/rma/window"
)

// Stats describes a rank's part of a table and what this process has done on the table.
type Stats struct {
	// Entries is the number of entries. Deleted is the number of slots of deleted keys that have not come back. Slots
	// is the present number of slots.
	Entries, Deleted, Slots int
	// UsedBytes of the RecordBytes are allocated, and LiveBytes of these belong to entries. The others belong to
	// deleted keys, or wait in some rank to be used again.
	LiveBytes, UsedBytes, RecordBytes int
	// WaitingBytes is the space, of all ranks' record space, that this rank has retired and that is not free yet.
	WaitingBytes int
	// FreeBytes is the space, of all ranks' record space, that is free and reserved for this process.
	FreeBytes int
	// Counts of this process. Operations were carried out on the table; Combined of them along with another operation
	// of their Run. Retries are slots that another operation had changed. Refills are searches of Runs for record
	// space among used pieces. Growths are replacements of an owner's index that this process began.
	Operations, Combined, Retries, Refills, Growths uint64
}

// own adds what this process has done.
func (t *Table) own(stats *Stats) {
	for owner := range t.spaces {
		stats.FreeBytes += int(t.spaces[owner].idle.Load()) * wordBytes
	}
	stats.Operations, stats.Combined, stats.Retries = t.operations.Load(), t.combined.Load(), t.retries.Load()
	stats.Refills, stats.Growths = t.refills.Load(), t.growths.Load()
}

// count counts a slot. The entry of a frozen slot is in the next index, or about to be.
func (t *Table) count(stats *Stats, s slot) {
	switch {
	case !s.taken() || s.frozen() || t.check(s) != nil:
	case s.live():
		stats.Entries++
		stats.LiveBytes += pieceWords(s.words()) * wordBytes
	default:
		stats.Deleted++
	}
}

// Stats examines this rank's part of the table. Changes meanwhile may be counted or not.
func (t *Table) Stats() Stats {
	stats := Stats{RecordBytes: t.recordWords * wordBytes}
	if !t.closed.Load() && !t.isClient {
		// A rank can always read its own memory.
		stats, _ = t.statsOf(context.Background(), t.world.Rank())
	}
	t.own(&stats)
	return stats
}

// StatsOf examines the part of any rank, as Stats does for this rank. It reads all slots of that rank.
func (t *Table) StatsOf(ctx context.Context, rank int) (Stats, error) {
	err := cmp.Or(checkContext(ctx), t.checkOwner(rank))
	var stats Stats
	if err == nil {
		stats, err = t.statsOf(ctx, rank)
	}
	if err != nil {
		return Stats{}, fmt.Errorf("hashtable: StatsOf rank %d: %w", rank, err)
	}
	t.own(&stats)
	return stats, nil
}

// statsOf examines the part of a rank.
func (t *Table) statsOf(ctx context.Context, rank int) (Stats, error) {
	stats := Stats{RecordBytes: t.recordWords * wordBytes}
	slots := make([]uint64, bucketsAtOnce*bucketSlots)
	count := func(x index, first, end int) error {
		for ; first < end; first += bucketsAtOnce {
			some := slots[:min(bucketsAtOnce, end-first)*bucketSlots]
			if err := t.readSlots(ctx, rank, x.place(first, 0, 0), some); err != nil {
				return err
			}
			for _, s := range some {
				t.count(&stats, slot(s))
			}
		}
		return nil
	}
	var at position
	for over := false; !over; {
		err := t.during(ctx, rank, func(v view) error {
			x := t.indexOf(v.current)
			first, end := at.in(v.current, x, bucketsAtOnce)
			at, over = position{end, v.current.level()}, end >= x.buckets
			stats.Slots = x.buckets * bucketSlots
			err := count(x, first, end)
			if err == nil && v.moving() {
				next := t.indexOf(v.next)
				err = count(next, first*next.buckets/x.buckets, end*next.buckets/x.buckets)
			}
			return err
		})
		if err != nil {
			return stats, err
		}
	}
	tail, err := t.loadWord(ctx, rank, tailWord)
	if err != nil {
		return stats, err
	}
	waiting, err := t.loadWord(ctx, rank, waitingWord)
	stats.UsedBytes, stats.WaitingBytes = int(min(tail, uint64(t.recordWords)))*wordBytes, int(waiting)*wordBytes
	return stats, err
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

// bucketsAtOnce is the number of buckets that are read together.
const bucketsAtOnce = 16

// readSlots reads the slots that begin at displacement start.
func (t *Table) readSlots(ctx context.Context, rank, start int, to []uint64) error {
	if err := t.words.GetAccumulate(window.NoOp, nil, to, rank, start); err != nil {
		return err
	}
	return t.words.Flush(ctx, rank)
}
