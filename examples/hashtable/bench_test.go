package hashtable

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/onesided/rma/world"
)

// BenchmarkTable is rank 0 of two goroutines; the other sleeps. Words are drawn by
// Zipf's law from 50000.
func BenchmarkTable(b *testing.B) {
	const words, most = 50_000, 1000
	zipf := rand.NewZipf(rand.New(rand.NewPCG(1, 2)), 1.1, 1, words-1)
	draw := make([]string, 1<<16)
	for i := range draw {
		draw[i] = fmt.Sprint("word", zipf.Uint64())
	}
	value := make([]byte, 32)
	for _, c := range []struct {
		name  string
		one   func(ctx context.Context, t *Table, key string) error
		queue func(batch *Batch, key string)
	}{
		{"Add", func(ctx context.Context, t *Table, key string) error { _, err := t.Add(ctx, key, 1); return err }, func(batch *Batch, key string) { batch.Add(key, 1) }},
		{"Count", func(ctx context.Context, t *Table, key string) error { _, _, err := t.Count(ctx, key); return err }, func(batch *Batch, key string) { batch.Count(key) }},
		{"Put", func(ctx context.Context, t *Table, key string) error { return t.Put(ctx, "p"+key, value) }, nil},
		{"Get", func(ctx context.Context, t *Table, key string) error { _, _, err := t.Get(ctx, "p"+key); return err }, nil},
	} {
		run := func(name string, loop func(ctx context.Context, b *testing.B, t *Table) error) {
			b.Run(c.name+"/"+name, func(b *testing.B) {
				err := world.Run(b.Context(), 2, func(ctx context.Context, w *world.World) error {
					t, err := New(ctx, w, Config{Slots: 1 << 17, RecordBytes: 1 << 30})
					if err != nil {
						return err
					}
					if w.Rank() == 0 {
						for _, key := range draw {
							if _, err := t.Add(ctx, key, 1); err != nil {
								return err
							}
						}
						b.ReportAllocs()
						if err := loop(ctx, b, t); err != nil {
							return err
						}
					}
					return t.Close()
				})
				if err != nil {
					b.Fatal(err)
				}
			})
		}
		run("one", func(ctx context.Context, b *testing.B, t *Table) error {
			for i := 0; b.Loop(); i++ {
				if err := c.one(ctx, t, draw[i%len(draw)]); err != nil {
					return err
				}
			}
			return nil
		})
		if c.queue == nil {
			continue
		}
		run("batch", func(ctx context.Context, b *testing.B, t *Table) error {
			batch := t.NewBatch()
			for i := 0; b.Loop(); i++ {
				if c.queue(batch, draw[i%len(draw)]); batch.Len() == most {
					if err := batch.Run(ctx); err != nil {
						return err
					}
					batch.Reset()
				}
			}
			return batch.Run(ctx)
		})
	}
}

// BenchmarkInsert adds words that are not there yet, in batches.
func BenchmarkInsert(b *testing.B) {
	const words, most = 1 << 17, 1024
	keys := make([]string, words)
	for i := range keys {
		keys[i] = fmt.Sprint("word", i)
	}
	var spent, ranged time.Duration
	for b.Loop() {
		err := world.Run(b.Context(), 2, func(ctx context.Context, w *world.World) error {
			t, err := New(ctx, w, Config{Slots: words, RecordBytes: words * CounterBytes(10)})
			if err != nil {
				return err
			}
			if w.Rank() == 0 {
				batch, start := t.NewBatch(), time.Now()
				for i, key := range keys {
					if batch.Add(key, 1); i%most == most-1 {
						if err := batch.Run(ctx); err != nil {
							return err
						}
						batch.Reset()
					}
				}
				spent += time.Since(start)
				start = time.Now()
				for range t.Local() {
				}
				ranged += time.Since(start)
			}
			return t.Close()
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(spent.Nanoseconds())/float64(b.N*words), "ns/insert")
	b.ReportMetric(float64(ranged.Nanoseconds())/float64(b.N*words/2), "ns/entry")
}
