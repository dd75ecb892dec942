package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/onesided/rma/internal/histogram"
	"github.com/onesided/rma/world"
)

// percentiles tell how the times of a cell's turns are distributed, in the cell's unit.
type percentiles struct {
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p99.9"`
	Max  float64 `json:"max"`
	// Batch is how many turns were timed together, of which the mean counts, and Count how many
	// such times there are.
	Batch int    `json:"batch"`
	Count uint64 `json:"count"`
}

// A percentile is one of them by its name, and what share of the times exceeds it.
type percentile struct {
	name   string
	beyond float64
	value  float64
}

// each are the percentiles from the least on.
func (p *percentiles) each() []percentile {
	return []percentile{{"p50", 0.5, p.P50}, {"p90", 0.1, p.P90}, {"p99", 0.01, p.P99}, {"p99.9", 0.001, p.P999}, {"max", 0, p.Max}}
}

// lines are the percentiles as they are printed below the result.
func (r result) percentileLines() []string {
	if r.Percentiles == nil {
		return nil
	}
	var lines []string
	for _, p := range r.Percentiles.each() {
		lines = append(lines, fmt.Sprintf("%-21s %9d %14.4f %s", r.Case+":"+p.name, r.Size, p.value, r.Unit))
	}
	return lines
}

// distributed tells whether the case has percentiles: it is a latency whose turns rank 0 times.
func (c *benchCase) distributed() bool {
	return c.unit == microseconds && c.origin != nil && c.sample == nil && c.prepare == nil && !c.ofTarget
}

// The clock is read once a batch, which takes clockShare times as long as that unless it would have
// more than longestBatch turns, among which a slow one would not be seen.
const (
	clockShare   = 20
	longestBatch = 64
)

// distribution times the turns of a cell once more, one by one or in batches, after the loops that
// its value is of. turn is what one takes.
func (s *stage) distribution(ctx context.Context, b *board, one cell, turn time.Duration) (*percentiles, error) {
	// Who answers has to have as many turns.
	batches := []int{s.turns(one), s.batch(turn)}
	if err := world.Broadcast(ctx, s.w, 0, batches); err != nil {
		return nil, err
	}
	count, batch := batches[0], batches[1]
	f := s.part(one.c)
	if err := loop(ctx, b, f, one.size, count/10+1); err != nil {
		return nil, err
	}
	h := new(histogram.Histogram)
	if err := s.w.Barrier(ctx); err != nil {
		return nil, err
	}
	most, err := s.batches(ctx, b, f, one.size, count, batch, h)
	if err != nil {
		return nil, err
	}
	if err := s.w.Barrier(ctx); err != nil {
		return nil, err
	}
	at := func(d time.Duration) float64 { return one.c.value(d.Seconds()/float64(batch), one.size) }
	p := &percentiles{Batch: batch, Count: h.Total(), Max: at(most)}
	for i, value := range []*float64{&p.P50, &p.P90, &p.P99, &p.P999} {
		*value = min(at(h.Quantile([]float64{0.5, 0.9, 0.99, 0.999}[i])), p.Max)
	}
	return p, nil
}

// batches runs so many batches of turns, and counts in h what each took. It gives the longest.
func (s *stage) batches(ctx context.Context, b *board, f step, n, count, batch int, h *histogram.Histogram) (most time.Duration, err error) {
	if s.w.Rank() != 0 {
		return 0, loop(ctx, b, f, n, count*batch)
	}
	last := s.w.Now()
	for range count {
		if err := loop(ctx, b, f, n, batch); err != nil {
			return 0, err
		}
		now := s.w.Now()
		took := now - last
		h.Add(took, 1)
		most, last = max(most, took), now
	}
	return most, nil
}

// batch is how many turns are timed together if one takes that long.
func (s *stage) batch(turn time.Duration) int {
	if s.virtual {
		return 1 // to read the clock takes no time
	}
	const readings = 64
	costs := make([]time.Duration, 5)
	for i := range costs {
		start := s.w.Now()
		for range readings {
			_ = s.w.Now()
		}
		costs[i] = (s.w.Now() - start) / readings
	}
	return batchOf(turn, slices.Min(costs))
}

func batchOf(turn, clock time.Duration) int {
	if turn <= 0 {
		return longestBatch
	}
	return int(min(max((clockShare*clock+turn-1)/turn, 1), longestBatch))
}
