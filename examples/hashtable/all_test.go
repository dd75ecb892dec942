package hashtable

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/internal/simtest"
	"github.com/onesided/rma/internal/tuning"
	"github.com/onesided/rma/scheduler"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// All yields every entry that stays exactly once, on every rank, while other entries are added, changed and removed.
var ranged = register("entries of all ranks", func(s *script) {
	const staying, changing = 150, 40
	t := s.table(Config{Slots: 2048, RecordBytes: 1 << 18})
	key := func(kind string, rank, i int) string { return fmt.Sprintf("%s %d %d", kind, rank, i) }
	value := func(rank, i int) []byte { return bytes.Repeat([]byte{byte(rank), byte(i)}, i%50) }
	for i := range staying {
		s.OK(t.Put(s.Ctx, key("stays", s.World.Rank(), i), value(s.World.Rank(), i)))
	}
	_, err := t.Add(s.Ctx, key("counts", s.World.Rank(), 0), uint64(s.World.Rank())+7)
	s.OK(err)
	s.Barrier()
	want := map[string]Value{}
	for rank := range s.World.Size() {
		for i := range staying {
			want[key("stays", rank, i)] = Value{Bytes: value(rank, i)}
		}
		want[key("counts", rank, 0)] = Value{Counter: true, Count: uint64(rank) + 7}
	}
	seen := map[string]bool{}
	entries, failed := t.All(s.Ctx)
	turn := 0
	for k, v := range entries {
		s.Check(!seen[k], "%q is seen twice", k)
		seen[k] = true
		if w, there := want[k]; there {
			s.Check(v.Counter == w.Counter && v.Count == w.Count && bytes.Equal(v.Bytes, w.Bytes), "%q is %+v, want %+v", k, v, w)
			delete(want, k)
		}
		if turn++; turn%10 == 0 {
			changed := key("changes", s.World.Rank(), turn%changing)
			_, err := t.Delete(s.Ctx, changed)
			s.OK(err)
			s.OK(t.Put(s.Ctx, changed, value(3, turn)))
		}
	}
	s.OK(failed())
	s.Check(len(want) == 0, "%d entries were not seen", len(want))
	s.Barrier()
	total, live := 0, 0
	for rank := range s.World.Size() {
		stats, err := t.StatsOf(s.Ctx, rank)
		s.OK(err)
		total, live = total+stats.Entries, live+stats.LiveBytes
		if rank == s.World.Rank() {
			own := t.Stats()
			own.Operations, own.Retries, own.Refills = stats.Operations, stats.Retries, stats.Refills
			s.Check(own == stats, "Stats are %+v, StatsOf %+v", own, stats)
		}
	}
	sum, liveSum := 0, 0
	for _, stats := range gather(s, []Stats{t.Stats()}) {
		sum, liveSum = sum+stats.Entries, liveSum+stats.LiveBytes
		s.Check(stats.Operations > staying, "Stats are %+v", stats)
	}
	s.Check(total == sum && live == liveSum, "%d entries of %d bytes in all, %d of %d by their owners", total, live, sum, liveSum)

	// A range ends early when its loop breaks, or when its context ends.
	for range entries {
		break
	}
	s.OK(failed())
	ended, end := context.WithCancel(s.Ctx)
	end()
	entries, failed = t.All(ended)
	for range entries {
	}
	if err := failed(); err != nil {
		s.Fails(err, context.Canceled)
	}
	_, err = t.StatsOf(s.Ctx, s.World.Size())
	s.Fails(err, window.ErrRank)
	s.close(t)
	entries, failed = t.All(s.Ctx)
	for range entries {
		s.Check(false, "a closed table has entries")
	}
	s.Check(errors.Is(failed(), ErrClosed), "All of a closed table: %v", failed())
})

func TestAll(t *testing.T) { everywhere(t, ranged) }

// A range reads far ahead: it takes little longer than batches that get as many keys. Times are virtual.
func TestAllReadsAhead(t *testing.T) {
	for _, profile := range []string{"ndr-2024", "connectx-ddr-2009"} {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			const keys = 4000
			require.NoError(t, world.Simulate(t.Context(), simtest.New(t, profile, 1), 2, func(ctx context.Context, w *world.World) error {
				table, err := New(ctx, w, Config{Slots: keys, RecordBytes: 100 * keys})
				if err != nil {
					return err
				}
				if w.Rank() == 0 {
					names := names("key ", keys)
					if err := putAll(ctx, table, names); err != nil {
						return err
					}
					begun := w.Now()
					if err := getAll(ctx, table, names); err != nil {
						return err
					}
					gets := w.Now() - begun
					begun = w.Now()
					if err := rangeAll(ctx, table, keys); err != nil {
						return err
					}
					all := w.Now() - begun
					require.LessOrEqual(t, float64(all)/float64(gets), 1.5, "%v for a range, %v for gets", all, gets)
				}
				if err := w.Barrier(ctx); err != nil {
					return err
				}
				return table.Close()
			}))
		})
	}
}

// A client's range over a served table reads as far ahead. Sessions have no virtual time, so the test counts what the
// client sends: requests of their own, and messages that operations share. Without adaptation, which tries requests of
// their own at times, the same operations make the same messages. A range that does not read further ahead each time
// sends 250 of them.
func TestAllOfServedTableReadsAhead(t *testing.T) {
	const keys = 4000
	l, err := world.Listen(t.Context(), "127.0.0.1:0", world.WithoutKey())
	require.NoError(t, err)
	require.NoError(t, serveTable(t.Context(), l, Config{Slots: keys, RecordBytes: 100 * keys, Clients: 1}, func(s *script, _ *Table) {
		s.OK(visitTable(s.Ctx, l.Addr().String(), func(s *script, table *Table) {
			names := names("key ", keys)
			sent := func(f func()) uint64 {
				before := table.words.Stats()
				f()
				after := table.words.Stats()
				s.Check(after.Packed.Operations()-before.Packed.Operations()+after.Direct.Operations()-before.Direct.Operations() >= keys, "%+v after %+v", after, before)
				return after.Direct.Operations() - before.Direct.Operations() + after.Packets - before.Packets
			}
			s.OK(putAll(s.Ctx, table, names))
			gets := sent(func() { s.OK(getAll(s.Ctx, table, names)) })
			all := sent(func() { s.OK(rangeAll(s.Ctx, table, keys)) })
			s.Check(2*all <= 3*gets, "a range sent %d requests and messages, batches of gets %d", all, gets)
		}, job.Tune(func(t *tuning.Tuning) { t.NoSchemes = scheduler.Adapt })))
	}))
}

// putAll puts a short value under each key.
func putAll(ctx context.Context, t *Table, keys []string) error {
	return inBatches(ctx, t.NewBatch(), keys, func(b *Batch, key string) { b.Put(key, []byte(key)) })
}

// getAll gets each key, in batches.
func getAll(ctx context.Context, t *Table, keys []string) error {
	return inBatches(ctx, t.NewBatch(), keys, func(b *Batch, key string) { b.Get(key) })
}

// rangeAll ranges over the table. It returns an error if the table does not have n entries.
func rangeAll(ctx context.Context, t *Table, n int) error {
	entries, failed := t.All(ctx)
	seen := 0
	for range entries {
		seen++
	}
	if err := failed(); err != nil {
		return err
	}
	if seen != n {
		return fmt.Errorf("%d entries, want %d", seen, n)
	}
	return nil
}
