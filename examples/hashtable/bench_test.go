package hashtable

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/onesided/rma/internal/simtest"
	"github.com/onesided/rma/world"
)

const benchBatch = 1024

// pair runs body on rank 0 of two goroutines while rank 1 sleeps. Both ranks own keys.
func pair(b *testing.B, config Config, body func(ctx context.Context, t *Table) error) {
	err := world.Run(b.Context(), 2, func(ctx context.Context, w *world.World) error {
		t, err := New(ctx, w, config)
		if err != nil {
			return err
		}
		if w.Rank() == 0 {
			if err := body(ctx, t); err != nil {
				return err
			}
		}
		return t.Close()
	})
	if err != nil {
		b.Fatal(err)
	}
}

// names returns n different keys with the length of words.
func names(prefix string, n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprint(prefix, i)
	}
	return keys
}

// inBatches queues an operation on each key, and runs the operations in batches.
func inBatches(ctx context.Context, batch *Batch, keys []string, queue func(batch *Batch, key string)) error {
	return inBatchesOf(ctx, benchBatch, batch, keys, queue)
}

func inBatchesOf(ctx context.Context, size int, batch *Batch, keys []string, queue func(batch *Batch, key string)) error {
	for some := range slices.Chunk(keys, size) {
		for _, key := range some {
			queue(batch, key)
		}
		if err := batch.Run(ctx); err != nil {
			return err
		}
		batch.Reset()
	}
	return nil
}

// BenchmarkThere measures operations on existing entries, drawn from 50000 words by Zipf's law.
func BenchmarkThere(b *testing.B) {
	const words = 50_000
	zipf := rand.NewZipf(rand.New(rand.NewPCG(1, 2)), 1.1, 1, words-1)
	counters, values := names("word", words), names("text", words)
	var draw [1 << 16]uint64
	for i := range draw {
		draw[i] = zipf.Uint64()
	}
	value := make([]byte, 32)
	for _, c := range []struct {
		name  string
		keys  []string
		one   func(ctx context.Context, t *Table, key string) error
		queue func(batch *Batch, key string)
	}{
		{"Add", counters, func(ctx context.Context, t *Table, key string) error { _, err := t.Add(ctx, key, 1); return err }, func(batch *Batch, key string) { batch.Add(key, 1) }},
		{"Count", counters, func(ctx context.Context, t *Table, key string) error { _, _, err := t.Count(ctx, key); return err }, func(batch *Batch, key string) { batch.Count(key) }},
		{"Get", values, func(ctx context.Context, t *Table, key string) error { _, _, err := t.Get(ctx, key); return err }, func(batch *Batch, key string) { batch.Get(key) }},
	} {
		run := func(name string, loop func(ctx context.Context, b *testing.B, t *Table) error) {
			b.Run(c.name+"/"+name, func(b *testing.B) {
				b.ReportAllocs()
				pair(b, Config{Slots: 1 << 17, RecordBytes: 8 << 20}, func(ctx context.Context, t *Table) error {
					batch := t.NewBatch()
					if err := inBatches(ctx, batch, counters, func(batch *Batch, key string) { batch.Add(key, 1) }); err != nil {
						return err
					}
					if err := inBatches(ctx, batch, values, func(batch *Batch, key string) { batch.Put(key, value) }); err != nil {
						return err
					}
					return loop(ctx, b, t)
				})
			})
		}
		run("one", func(ctx context.Context, b *testing.B, t *Table) error {
			for i := 0; b.Loop(); i++ {
				if err := c.one(ctx, t, c.keys[draw[i%len(draw)]]); err != nil {
					return err
				}
			}
			return nil
		})
		run("batch", func(ctx context.Context, b *testing.B, t *Table) error {
			batch := t.NewBatch()
			for i := 0; b.Loop(); i++ {
				if c.queue(batch, c.keys[draw[i%len(draw)]]); batch.Len() == benchBatch {
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

// BenchmarkNew measures operations that need records, in batches, and ranges over the new entries. ns/op is the time of
// one operation, ns/entry that of one step of the range.
func BenchmarkNew(b *testing.B) {
	const words = 1 << 17
	keys, value := names("word", words), make([]byte, 32)
	put := func(batch *Batch, key string) { batch.Put(key, value) }
	for _, c := range []struct {
		name  string
		there bool
		queue func(batch *Batch, key string)
	}{
		{"Add", false, func(batch *Batch, key string) { batch.Add(key, 1) }},
		{"Put", false, put},
		{"Replace", true, put},
	} {
		b.Run(c.name, func(b *testing.B) {
			var spent, ranged time.Duration
			entries := 0
			for b.Loop() {
				pair(b, Config{Slots: words, RecordBytes: 2 * words * EntryBytes(10, 32)}, func(ctx context.Context, t *Table) error {
					batch := t.NewBatch()
					if c.there {
						if err := inBatches(ctx, batch, keys, c.queue); err != nil {
							return err
						}
					}
					start := time.Now()
					if err := inBatches(ctx, batch, keys, c.queue); err != nil {
						return err
					}
					spent += time.Since(start)
					start = time.Now()
					for range t.Local() {
						entries++
					}
					ranged += time.Since(start)
					return nil
				})
			}
			b.ReportMetric(float64(spent.Nanoseconds())/float64(b.N*words), "ns/op")
			b.ReportMetric(float64(ranged.Nanoseconds())/float64(entries), "ns/entry")
		})
	}
}

// BenchmarkAll measures a range over the entries of another process's table, beside batches that get the same keys. The
// table is served to a client, or belongs to two ranks that are connected by TCP.
func BenchmarkAll(b *testing.B) {
	const words = 50_000
	keys := names("word", words)
	config := Config{Slots: 2 * words, RecordBytes: words * EntryBytes(10, 10)}
	served := config
	served.Clients = 1
	operations := []struct {
		name string
		run  func(ctx context.Context, t *Table) error
	}{
		{"all", func(ctx context.Context, t *Table) error { return rangeAll(ctx, t, words) }},
		{"gets", func(ctx context.Context, t *Table) error { return getAll(ctx, t, keys) }},
	}
	measured := func(b *testing.B, ctx context.Context, t *Table, run func(ctx context.Context, t *Table) error) error {
		if err := putAll(ctx, t, keys); err != nil {
			return err
		}
		for b.Loop() {
			if err := run(ctx, t); err != nil {
				return err
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*words), "ns/key")
		return nil
	}
	for _, o := range operations {
		b.Run("served/"+o.name, func(b *testing.B) {
			l, err := world.Listen(b.Context(), "127.0.0.1:0", world.WithoutKey())
			if err != nil {
				b.Fatal(err)
			}
			if err := serveTable(b.Context(), l, served, func(s *script, _ *Table) {
				s.OK(visitTable(s.Ctx, l.Addr().String(), func(s *script, t *Table) { s.OK(measured(b, s.Ctx, t, o.run)) }))
			}); err != nil {
				b.Fatal(err)
			}
		})
	}
	for _, o := range operations {
		b.Run("ranks/"+o.name, func(b *testing.B) {
			err := world.Run(b.Context(), 2, func(ctx context.Context, w *world.World) error {
				t, err := New(ctx, w, config)
				if err != nil {
					return err
				}
				if w.Rank() == 0 {
					err = measured(b, ctx, t, o.run)
				}
				return errors.Join(err, t.Close())
			}, world.WithDevice("tcp"))
			if err != nil {
				b.Fatal(err)
			}
		})
	}
}

// BenchmarkPrefetch measures batches on entries that are spread over memory, with and without prefetching.
func BenchmarkPrefetch(b *testing.B) {
	const words = 1 << 18
	keys, value := names("word", words), make([]byte, 64)
	rand.New(rand.NewPCG(1, 2)).Shuffle(words, func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	put := func(batch *Batch, key string) { batch.Put(key, value) }
	get := func(batch *Batch, key string) { batch.Get(key) }
	for _, c := range []struct {
		name  string
		queue func(batch *Batch, key string)
	}{{"Get", get}, {"Put", put}} {
		for _, prefetches := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/prefetches=%v", c.name, prefetches), func(b *testing.B) {
				pair(b, Config{Slots: words, RecordBytes: 4 * words * EntryBytes(10, 64)}, func(ctx context.Context, t *Table) error {
					t.prefetches = prefetches
					batch := t.NewBatch()
					if err := inBatches(ctx, batch, keys, put); err != nil {
						return err
					}
					for b.Loop() {
						if err := inBatches(ctx, batch, keys, c.queue); err != nil {
							return err
						}
					}
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*words), "ns/key")
					return nil
				})
			})
		}
	}
}

// BenchmarkParallelFlush measures batches of 64 Gets from eight ranks on simulated cards, in virtual time. The flushes of the
// ranks overlap or follow each other.
func BenchmarkParallelFlush(b *testing.B) {
	const ranks, batches, size = 8, 200, 64
	keys, value := names("word", batches*size), make([]byte, 64)
	for _, parallelFlush := range []bool{false, true} {
		b.Run(fmt.Sprintf("parallelFlush=%v", parallelFlush), func(b *testing.B) {
			var spent time.Duration
			for b.Loop() {
				err := world.Simulate(b.Context(), simtest.New(b, "ndr-2024", 1), ranks, func(ctx context.Context, w *world.World) error {
					t, err := New(ctx, w, Config{Slots: 1 << 13, RecordBytes: batches * size * EntryBytes(8, 64)})
					if err != nil {
						return err
					}
					t.parallelFlush = parallelFlush
					if w.Rank() == 0 {
						batch := t.NewBatch()
						if err := inBatches(ctx, batch, keys, func(batch *Batch, key string) { batch.Put(key, value) }); err != nil {
							return err
						}
						begun := w.Now()
						for i := range batches {
							if err := inBatches(ctx, batch, keys[i*size:][:size], func(batch *Batch, key string) { batch.Get(key) }); err != nil {
								return err
							}
						}
						spent += w.Now() - begun
					}
					return t.Close()
				})
				if err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(spent.Seconds()*1e6/float64(b.N*batches), "virtual-us/batch")
		})
	}
}

// acrossTCP makes two ranks queue operations on the keys, in batches of size, over TCP. Each rank owns half of the
// keys, and all keys exist. prepare is called with each rank's table.
func acrossTCP(b *testing.B, keys []string, size int, prepare func(t *Table), queue func(batch *Batch, key string)) {
	value := make([]byte, 64)
	err := world.Run(b.Context(), 2, func(ctx context.Context, w *world.World) error {
		t, err := New(ctx, w, Config{Slots: 2 * len(keys), RecordBytes: 4 * len(keys) * EntryBytes(16, len(value))})
		if err != nil {
			return err
		}
		prepare(t)
		batch := t.NewBatch()
		if err := inBatches(ctx, batch, keys, func(batch *Batch, key string) { batch.Put(key, value) }); err != nil {
			return err
		}
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		if w.Rank() == 0 {
			b.ResetTimer()
		}
		for range b.N {
			if err := inBatchesOf(ctx, size, batch, keys, queue); err != nil {
				return err
			}
		}
		return t.Close()
	}, world.WithDevice("tcp"))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(keys)), "ns/key")
}

// BenchmarkParts measures batches of 4096 Gets, whole and divided into parts.
func BenchmarkParts(b *testing.B) {
	const size = 4096
	keys := names("word", size)
	for _, parts := range []bool{false, true} {
		b.Run(fmt.Sprintf("parts=%v", parts), func(b *testing.B) {
			acrossTCP(b, keys, size, func(t *Table) {
				if !parts {
					t.part = size
				}
			}, func(batch *Batch, key string) { batch.Get(key) })
		})
	}
}

// BenchmarkCombine measures batches with and without combining. Their keys are drawn by Zipf's law, or are all
// different.
func BenchmarkCombine(b *testing.B) {
	const words = 50_000
	random := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(random, 1.01, 1, words-1)
	once, value := names("word", words), make([]byte, 64)
	drawn := make([]string, words)
	for i := range drawn {
		drawn[i] = once[zipf.Uint64()]
	}
	random.Shuffle(words, func(i, j int) { once[i], once[j] = once[j], once[i] })
	for _, c := range []struct {
		name  string
		keys  []string
		queue func(batch *Batch, key string)
	}{
		{"Get/zipf", drawn, func(batch *Batch, key string) { batch.Get(key) }},
		{"Get/once", once, func(batch *Batch, key string) { batch.Get(key) }},
		{"Put/zipf", drawn, func(batch *Batch, key string) { batch.Put(key, value) }},
		{"Put/once", once, func(batch *Batch, key string) { batch.Put(key, value) }},
	} {
		for _, combines := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/combine=%v", c.name, combines), func(b *testing.B) {
				acrossTCP(b, c.keys, benchBatch, func(t *Table) { t.combines = combines }, c.queue)
			})
		}
	}
}
