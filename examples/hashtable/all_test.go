package hashtable

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/simtest"
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

// A range reads far ahead. In virtual time it takes little longer than batches that get as many keys.
func TestAllReadsAhead(t *testing.T) {
	const keys, together = 4000, 1000
	require.NoError(t, world.Simulate(t.Context(), simtest.New(t, "connectx-ddr-2009", 1), 2, func(ctx context.Context, w *world.World) error {
		table, err := New(ctx, w, Config{Slots: keys, RecordBytes: 100 * keys})
		if err != nil {
			return err
		}
		// run queues an operation on every key and runs them in batches of together operations.
		run := func(queue func(b *Batch, key string)) error {
			b := table.NewBatch()
			for i := range keys {
				queue(b, fmt.Sprint("key ", i))
				if b.Len() < together && i < keys-1 {
					continue
				}
				if err := b.Run(ctx); err != nil {
					return err
				}
				b.Reset()
			}
			return nil
		}
		if w.Rank() == 0 {
			if err := run(func(b *Batch, key string) { b.Put(key, []byte(key)) }); err != nil {
				return err
			}
			begun := w.Now()
			if err := run(func(b *Batch, key string) { b.Get(key) }); err != nil {
				return err
			}
			gets := w.Now() - begun
			begun = w.Now()
			entries, failed := table.All(ctx)
			seen := 0
			for range entries {
				seen++
			}
			if err := failed(); err != nil {
				return err
			}
			require.Equal(t, keys, seen)
			require.LessOrEqual(t, float64(w.Now()-begun)/float64(gets), 1.5, "%v for a range, %v for gets", w.Now()-begun, gets)
		}
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		return table.Close()
	}))
}
