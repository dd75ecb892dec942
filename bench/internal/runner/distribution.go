package runner

import (
	"context"
	"slices"
	"time"

	"github.com/onesided/rma/bench/internal/cases"
	"github.com/onesided/rma/bench/internal/stats"
	"github.com/onesided/rma/internal/histogram"
	"github.com/onesided/rma/world"
)

// The clock is read once a batch. A batch takes clockShare times as long as reading the clock. It has at most
// longestBatch iterations, because a slow one would not show among more.
const (
	clockShare   = 20
	longestBatch = 64
)

// distribution times the iterations of a cell once more, one by one or in batches, after the loops of its value.
// iteration is the time of one.
func (s *Rank) distribution(ctx context.Context, b *cases.Buffers, one cases.Cell, iteration time.Duration) (*stats.Percentiles, error) {
	// The answering rank must have the same number of iterations.
	batches := []int{s.iterations(one), s.batch(iteration)}
	if err := world.Broadcast(ctx, s.World, 0, batches); err != nil {
		return nil, err
	}
	count, batch := batches[0], batches[1]
	f := s.Step(one.Case)
	if err := cases.Loop(ctx, b, f, one.Size, count/10+1); err != nil {
		return nil, err
	}
	h := new(histogram.Histogram)
	if err := s.World.Barrier(ctx); err != nil {
		return nil, err
	}
	most, err := s.batches(ctx, b, f, one.Size, count, batch, h)
	if err != nil {
		return nil, err
	}
	if err := s.World.Barrier(ctx); err != nil {
		return nil, err
	}
	at := func(d time.Duration) float64 { return one.Case.Value(d.Seconds()/float64(batch), one.Size) }
	p := &stats.Percentiles{Batch: batch, Count: h.Total(), Max: at(most)}
	for i, value := range []*float64{&p.P50, &p.P90, &p.P99, &p.P999} {
		*value = min(at(h.Quantile([]float64{0.5, 0.9, 0.99, 0.999}[i])), p.Max)
	}
	return p, nil
}

// batches runs count batches of iterations, and adds the time of each to h. It returns the longest.
func (s *Rank) batches(ctx context.Context, b *cases.Buffers, f cases.Step, n, count, batch int, h *histogram.Histogram) (most time.Duration, err error) {
	if s.World.Rank() != 0 {
		return 0, cases.Loop(ctx, b, f, n, count*batch)
	}
	last := s.World.Now()
	for range count {
		if err := cases.Loop(ctx, b, f, n, batch); err != nil {
			return 0, err
		}
		now := s.World.Now()
		took := now - last
		h.Add(took, 1)
		most, last = max(most, took), now
	}
	return most, nil
}

// batch returns the number of iterations that are timed together if one takes iteration.
func (s *Rank) batch(iteration time.Duration) int {
	if s.Virtual {
		return 1 // reading the clock takes no time
	}
	const readings = 64
	costs := make([]time.Duration, 5)
	for i := range costs {
		start := s.World.Now()
		for range readings {
			_ = s.World.Now()
		}
		costs[i] = (s.World.Now() - start) / readings
	}
	return batchOf(iteration, slices.Min(costs))
}

func batchOf(iteration, clock time.Duration) int {
	if iteration <= 0 {
		return longestBatch
	}
	return int(min(max((clockShare*clock+iteration-1)/iteration, 1), longestBatch))
}
