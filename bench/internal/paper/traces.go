package paper

import (
	"context"
	"math"
	"math/bits"
	"slices"
	"sync"

	"github.com/onesided/rma/bench/internal/stats"
	"github.com/onesided/rma/internal/traces"
	"github.com/onesided/rma/scheduler/transfer"
)

// Part trace: sequences of buffers of programs (package internal/traces) are played on the machine of part B. Each
// use is a put and its flush. It is played by each way in which an unregistered buffer gets to the card, and by the
// library's choice, which the papers leave as future work. The library's choice must be at most 5 % slower than the
// best way, and better than all if buffers differ.

// mostPlayed is about the number of uses of a trace that are played. Of longer traces only every n-th buffer is
// played, with all of its uses, so that the reuse does not change.
const mostPlayed = 170_000

// allTraces are drawn from one seed, for all runs.
var allTraces = sync.OnceValue(func() []traces.Trace { return traces.All(1) })

// allUses are the uses of allTraces that are played.
var allUses = sync.OnceValue(func() (all [][]int32) {
	for i := range allTraces() {
		all = append(all, thinned(&allTraces()[i]))
	}
	return all
})

func traceFigures() []*Figure {
	curves := []curve{
		moved("copy", "copied each time", transfer.Copy),
		moved("auto", "as the library likes"),
		moved("superpipeline", "superpipeline", transfer.Superpipeline),
		moved("register", "registered each time", transfer.Register),
		moved("cache", "registered at the first use, and kept", transfer.Cache),
		moved("caching-pipeline", "registered in pieces, and kept", transfer.CachingPipeline),
	}
	var figures []*Figure
	for i, uses := range allUses() {
		t := &allTraces()[i]
		f := Figure{
			name: t.Name, title: "uses of buffers, trace " + t.Name, counted: true, unit: milliseconds, yLabel: "time of all uses so far (ms)", logarithmic: true,
			curves: curves, measure: played(t, uses),
		}
		for part := 16; part > 0; part /= 2 {
			f.xs = append(f.xs, len(uses)/part)
		}
		var claims []claim
		for _, c := range curves {
			claims = append(claims, claim{name: "time_" + c.short, kind: unstated, unit: milliseconds, source: "not in a paper", of: func(p *Plot) float64 { return p.last(c.short) }})
		}
		ratio := claim{name: "auto_of_best", theirs: 105, kind: noMore, unit: stats.Percent, source: "C, 7, future work: adaptive", of: autoOfBest}
		if t.Mixed {
			ratio.theirs, ratio.kind = 100, less
		}
		figures = append(figures, f.of("trace", "connectx-ddr-2009", "uses so far", append(claims, ratio)...))
	}
	return figures
}

const milliseconds = "ms"

// thinned returns the uses of a trace that are played.
func thinned(t *traces.Trace) []int32 {
	every := int32((len(t.Order) + mostPlayed - 1) / mostPlayed)
	var uses []int32
	for _, b := range t.Order {
		if b%every == 0 {
			uses = append(uses, b)
		}
	}
	return uses
}

// last returns a curve's value at the last x.
func (p *Plot) last(curve string) float64 { return p.valueAt(curve, p.X[len(p.X)-1]) }

// autoOfBest returns the ratio of the time of the library's choice to that of the best other way.
func autoOfBest(p *Plot) float64 {
	best := math.Inf(1)
	for _, c := range p.Curves {
		if c.Short != "auto" {
			best = min(best, p.last(c.Short))
		}
	}
	return p.last("auto") / best * 100
}

// played measures the time of the first uses of a trace, as many as the figure's xs say.
func played(t *traces.Trace, uses []int32) measurement {
	return func(ctx context.Context, f *Figure, c *curve, o *Options) ([]float64, error) {
		one := transferCase{ranks: 2, bytes: slices.Max(t.Sizes), locked: true, body: func(ctx context.Context, s *transferStand) ([]float64, error) {
			if s.w.Rank() != 0 {
				return nil, s.w.Barrier(ctx)
			}
			values, err := s.play(ctx, f.xs, t, uses)
			if err != nil {
				return nil, err
			}
			return values, s.w.Barrier(ctx)
		}}
		return one.simulate(ctx, f, c, o)
	}
}

// play puts the buffers of the uses until the last mark, and returns the times at all marks. A buffer begins at a
// multiple of its length, so that it has no more pages than it needs.
func (s *transferStand) play(ctx context.Context, marks []int, t *traces.Trace, uses []int32) ([]float64, error) {
	buffers := make([][]byte, len(t.Sizes))
	put := func(buffer []byte) error {
		if err := s.window.Put(buffer, 1, 0); err != nil {
			return err
		}
		return s.window.Flush(ctx, 1)
	}
	// Before that, connections are made and the library's own memory is registered.
	warm := make([]byte, slices.Max(t.Sizes))
	if err := put(warm); err != nil {
		return nil, err
	}
	var values []float64
	begun := s.w.Now()
	for i, b := range uses[:marks[len(marks)-1]] {
		if buffers[b] == nil {
			size := t.Sizes[b]
			buffers[b] = make([]byte, 1<<bits.Len(uint(size-1)))[:size:size]
		}
		if err := put(buffers[b]); err != nil {
			return nil, err
		}
		if i+1 == marks[len(values)] {
			values = append(values, (s.w.Now()-begun).Seconds()*1e3)
		}
	}
	return values, nil
}
