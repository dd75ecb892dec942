package hashtable

import (
	"cmp"
	"context"
	"fmt"

	"github.com/onesided/rma/window"
)

// Stats describes a rank's part of a table, and what this process has done.
type Stats struct {
	// Entries is how many there are, Deleted how many slots belong to keys that
	// were deleted and have not come back, and Slots how many there are in all now.
	Entries, Deleted, Slots int
	// UsedBytes of RecordBytes were allocated. LiveBytes of these belong to entries.
	// The others belong to keys that were deleted, or wait in some rank to be used.
	LiveBytes, UsedBytes, RecordBytes int
	// WaitingBytes, of all ranks' record space, were retired by the rank and are not free yet.
	WaitingBytes int
	// FreeBytes, of all ranks' record space, are this process's own to use.
	FreeBytes int
	// Operations is how many this process has carried out on the table, Combined how many of them along with another
	// of their Run, Retries how often one found a slot changed by another, and Refills how often Runs had to look
	// for record space among pieces that were used before. Growths is how often it has begun to replace an owner's slots.
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

// count counts a slot. The entry of one that is frozen is in the next index, or about to be.
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

// Stats looks through this rank's part of the table. What changes meanwhile is counted or
// not.
func (t *Table) Stats() Stats {
	stats := Stats{RecordBytes: t.recordWords * wordBytes}
	if !t.closed.Load() && !t.visits {
		// Of its own memory a rank reads what it can.
		stats, _ = t.statsOf(context.Background(), t.world.Rank())
	}
	t.own(&stats)
	return stats
}

// StatsOf looks through the part of any rank, as Stats through this one's. It reads all of its slots.
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

// statsOf looks through the part of a rank.
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

// bucketsAtOnce is how many are read together.
const bucketsAtOnce = 16

// readSlots reads the slots that begin at a displacement.
func (t *Table) readSlots(ctx context.Context, rank, start int, to []uint64) error {
	if err := t.words.GetAccumulate(window.NoOp, nil, to, rank, start); err != nil {
		return err
	}
	return t.words.Flush(ctx, rank)
}
