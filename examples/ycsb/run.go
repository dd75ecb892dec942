package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/onesided/rma/examples/hashtable"
	"github.com/onesided/rma/internal/histogram"
	"github.com/onesided/rma/world"
)

// A kind is a kind of operation.
type kind uint8

const (
	read kind = iota
	update
	modify
	kinds
)

var kindNames = [kinds]string{"read", "update", "read-modify-write"}

// mostDraws is the number of draws that a rank makes beforehand.
const mostDraws = 1 << 20

// A result is the work of all ranks together.
type result struct {
	latencies [kinds]histogram.Histogram
	// rate is in operations a second.
	rate float64
}

// A worker is this rank's part of a run.
type worker struct {
	options
	w     *world.World
	table *hashtable.Table
	batch *hashtable.Batch
	// drawn are records, keys their keys in one string, and doing the kinds of operations on them.
	drawn []uint32
	keys  string
	doing []kind
	// values[i] is the value of operation i of a batch. written is the last version that was made.
	values    [][]byte
	written   uint64
	latencies [kinds]histogram.Histogram
}

// measure carries out the workload on w's ranks.
func measure(ctx context.Context, w *world.World, o options) (r *result, err error) {
	mine := share(o.operations, w)
	entry := hashtable.EntryBytes(keyBytes, o.value)
	// Keys spread over the ranks, but not evenly. There is room for replaced values whose space is not reused yet,
	// and for batches that are all on one rank.
	room := 3*o.records/w.Size() + 16*o.batch*w.Size() + 1000
	table, err := hashtable.New(ctx, w, hashtable.Config{Slots: 64 + 3*o.records/w.Size(), RecordBytes: room * entry})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, table.Close()) }()
	k := &worker{options: o, w: w, table: table, batch: table.NewBatch(), values: make([][]byte, o.batch)}
	k.prepare(min(mine, mostDraws))
	if err := k.load(ctx); err != nil {
		return nil, err
	}
	if err := w.Barrier(ctx); err != nil {
		return nil, err
	}
	start := time.Now()
	if err := k.work(ctx, mine); err != nil {
		return nil, err
	}
	return k.gather(ctx, time.Since(start))
}

// share returns this rank's part of n.
func share(n int, w *world.World) int {
	return (w.Rank()+1)*n/w.Size() - w.Rank()*n/w.Size()
}

// prepare makes draws.
func (k *worker) prepare(draws int) {
	for i := range k.values {
		k.values[i] = make([]byte, k.value)
	}
	random := rand.New(rand.NewPCG(1, uint64(k.w.Rank())))
	k.drawn = records(random, k.distribution, k.records, draws)
	var keys strings.Builder
	for _, record := range k.drawn {
		keys.WriteString(keyOf(int(record)))
	}
	k.keys = keys.String()
	k.doing = make([]kind, draws)
	for i := range k.doing {
		if random.Float64() >= k.workload.reads {
			k.doing[i] = k.workload.other
		}
	}
}

// put queues a new version of a record, as operation i of the batch.
func (k *worker) put(i int, key string, record uint32) {
	k.written++
	fill(k.values[i], uint64(record), k.written<<16|uint64(k.w.Rank()))
	k.batch.Put(key, k.values[i])
}

// load puts every record whose number is this rank's modulo the number of ranks.
func (k *worker) load(ctx context.Context) error {
	for record := k.w.Rank(); record < k.records; record += k.w.Size() {
		if k.put(k.batch.Len(), keyOf(record), uint32(record)); k.batch.Len() == k.options.batch {
			if err := k.batch.Run(ctx); err != nil {
				return err
			}
			k.batch.Reset()
		}
	}
	defer k.batch.Reset()
	return k.batch.Run(ctx)
}

// work carries out n operations.
func (k *worker) work(ctx context.Context, n int) error {
	for at := 0; n > 0; {
		size := min(k.options.batch, n, len(k.drawn)-at)
		if err := k.turn(ctx, at, size); err != nil {
			return err
		}
		if at += size; at == len(k.drawn) {
			at = 0
		}
		n -= size
	}
	return nil
}

// turn carries out the size draws from at on in a batch. The writes of read-modify-writes follow in a second batch.
func (k *worker) turn(ctx context.Context, at, size int) error {
	drawn, doing, keys := k.drawn[at:at+size], k.doing[at:at+size], k.keys[at*keyBytes:]
	key := func(i int) string { return keys[i*keyBytes:][:keyBytes] }
	start := time.Now()
	var counts [kinds]uint64
	for i, record := range drawn {
		counts[doing[i]]++
		if doing[i] == update {
			k.put(i, key(i), record)
		} else {
			k.batch.Get(key(i))
		}
	}
	if err := k.batch.Run(ctx); err != nil {
		return err
	}
	first := time.Since(start)
	k.latencies[read].Add(first, counts[read])
	k.latencies[update].Add(first, counts[update])
	for i, record := range drawn {
		if doing[i] == update {
			continue
		}
		got := k.batch.Result(i)
		if !got.Found {
			return fmt.Errorf("record %d is not there", record)
		}
		if err := verify(got.Value, uint64(record), k.value); err != nil {
			return err
		}
	}
	k.batch.Reset()
	if counts[modify] == 0 {
		return nil
	}
	for i, record := range drawn {
		if doing[i] == modify {
			k.put(i, key(i), record)
		}
	}
	if err := k.batch.Run(ctx); err != nil {
		return err
	}
	k.batch.Reset()
	k.latencies[modify].Add(time.Since(start), counts[modify])
	return nil
}

// gather combines the measurements of all ranks. The time of the slowest rank counts.
func (k *worker) gather(ctx context.Context, elapsed time.Duration) (*result, error) {
	times := make([]int64, k.w.Size())
	if err := world.AllGather(ctx, k.w, []int64{int64(elapsed)}, times); err != nil {
		return nil, err
	}
	slowest := int64(1)
	for _, t := range times {
		slowest = max(slowest, t)
	}
	r := &result{rate: float64(k.operations) / time.Duration(slowest).Seconds()}
	all := make([]uint64, histogram.Buckets*k.w.Size())
	for kind := range r.latencies {
		if err := world.AllGather(ctx, k.w, k.latencies[kind].Counts(), all); err != nil {
			return nil, err
		}
		for rank := range k.w.Size() {
			r.latencies[kind].Merge(all[rank*histogram.Buckets : (rank+1)*histogram.Buckets])
		}
	}
	return r, nil
}
