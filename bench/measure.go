package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"runtime"
	"time"

	"github.com/onesided/rma/bench/internal/machine"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// A stage is what one rank of a job needs to measure.
type stage struct {
	caseRank
	// open opens another device like that of w.
	open   func() (verbs.Device, error)
	allocs bool
	// tails is set if percentiles are requested.
	tails    bool
	settings settings
	// report receives each result on rank 0.
	report func(result) error
}

// run measures cells. It is collective. First come the cells under LockAll, then those between fences, then the rest,
// as in peers/mpi_rma.c.
func (s *stage) run(ctx context.Context, cells []cell) error {
	scenes := make(map[scene][]cell)
	for _, one := range cells {
		scenes[one.c.scene] = append(scenes[one.c.scene], one)
	}
	for _, together := range [][]scene{{passive, fence, pscw}, {tables}, {collective}, {messages}} {
		if err := s.runScenes(ctx, scenes, together); err != nil {
			return err
		}
	}
	for _, one := range scenes[alone] {
		if why := s.forbids(one); why != "" {
			if err := s.publish(left(one, s.w.Size(), why)); err != nil {
				return err
			}
			continue
		}
		values, err := one.c.measure(ctx, &s.caseRank)
		if err != nil {
			return fmt.Errorf("bench: %s with %d ranks: %w", one.c.name, one.size, err)
		}
		if err := s.publish(newResult(one, s.w.Size(), values)); err != nil {
			return err
		}
	}
	return nil
}

// newBoard makes the windows and buffers for cells.
func (s *stage) newBoard(ctx context.Context, cells []cell, options []window.Option) (*board, error) {
	b, err := newBoard(ctx, s.w, cells, options, s.settings.unregistered)
	if err == nil && !s.virtual && s.shorten <= 1 {
		b.touch()
	}
	return b, err
}

// runScenes measures the cells of scenes that share a board.
func (s *stage) runScenes(ctx context.Context, scenes map[scene][]cell, together []scene) error {
	var cells []cell
	for _, each := range together {
		cells = append(cells, scenes[each]...)
	}
	if len(cells) == 0 {
		return nil
	}
	b, err := s.newBoard(ctx, cells, s.options)
	if err != nil {
		return err
	}
	if together[0] == messages {
		if err := b.connect(ctx, cells, s.open, s.settings.tuning.NoPipes); err != nil {
			return err
		}
	}
	for _, each := range together {
		if len(scenes[each]) == 0 {
			continue
		}
		if err := b.enter(ctx, each); err != nil {
			return err
		}
		if err := s.measureAll(ctx, b, scenes[each]); err != nil {
			return err
		}
		if err := b.leave(ctx, each); err != nil {
			return err
		}
	}
	return b.close()
}

func (s *stage) measureAll(ctx context.Context, b *board, cells []cell) error {
	for _, one := range cells {
		if why := s.forbids(one); why != "" {
			if err := s.publish(left(one, s.w.Size(), why)); err != nil {
				return err
			}
			continue
		}
		r, err := s.measure(ctx, b, one)
		if err != nil {
			return fmt.Errorf("bench: %s of size %d: %w", one.c.name, one.size, err)
		}
		if err := s.publish(r); err != nil {
			return err
		}
	}
	return nil
}

// forbids says why a cell cannot be measured. It returns "" if it can.
func (s *stage) forbids(one cell) string {
	why := s.settings.forbids(one)
	if s.virtual {
		why = cmp.Or(one.c.real, why)
	}
	return why
}

// turns returns the iterations of a loop.
func (s *stage) turns(one cell) int {
	turns := one.c.iterations(one.size)
	if s.virtual {
		turns /= virtualTurns
	}
	return shortened(turns, s.shorten)
}

// measure times the loops of one cell.
func (s *stage) measure(ctx context.Context, b *board, one cell) (result, error) {
	if one.c.sample != nil {
		values, err := one.c.sample(ctx, &s.caseRank, b, one.size)
		if err != nil {
			return result{}, err
		}
		return newResult(one, s.w.Size(), values), nil
	}
	turns := s.turns(one)
	values := make([]float64, 0, s.repeat)
	var allocs uint64
	var best time.Duration
	for range s.repeat {
		took, allocated, err := s.timed(ctx, b, one, turns)
		if err != nil {
			return result{}, err
		}
		allocs += allocated
		if best == 0 || took < best {
			best = took
		}
		values = append(values, one.c.value(took.Seconds()/float64(turns), one.size))
	}
	r := newResult(one, s.w.Size(), values)
	if math.IsInf(r.Value, 0) {
		r = left(one, s.w.Size(), "it takes no time")
	}
	if s.allocs {
		r.Allocs = &allocs
	}
	if s.tails && one.c.distributed() {
		var err error
		if r.Percentiles, err = s.distribution(ctx, b, one, best/time.Duration(turns)); err != nil {
			return result{}, err
		}
	}
	return r, nil
}

// timed returns the time of one loop of a cell, and the number of objects that it allocated. A warm-up of a tenth of
// its iterations precedes it.
func (s *stage) timed(ctx context.Context, b *board, one cell, turns int) (took time.Duration, allocs uint64, err error) {
	// Calls that never wait never look at ctx.
	if ctx.Err() != nil {
		return 0, 0, context.Cause(ctx)
	}
	f, warmUp := s.part(one.c), turns/10+1
	if one.c.prepare != nil {
		if err := one.c.prepare(ctx, b, warmUp+turns, one.size); err != nil {
			return 0, 0, err
		}
	}
	if err := loop(ctx, b, f, one.size, warmUp); err != nil {
		return 0, 0, err
	}
	allocs = s.heapObjects()
	if err := s.w.Barrier(ctx); err != nil {
		return 0, 0, err
	}
	used := machine.ProcessorTime()
	start := s.w.Now()
	if err := loop(ctx, b, f, one.size, turns); err != nil {
		return 0, 0, err
	}
	took = s.w.Now() - start
	if err := s.w.Barrier(ctx); err != nil {
		return 0, 0, err
	}
	allocs = s.heapObjects() - allocs
	s.w.Span(one.String(), start, start+took)
	if one.c.ofTarget {
		took, err = s.ofTarget(ctx, machine.ProcessorTime()-used)
	}
	return took, allocs, err
}

// ofTarget returns rank 1's value.
func (s *stage) ofTarget(ctx context.Context, value time.Duration) (time.Duration, error) {
	values := []time.Duration{value}
	err := world.Broadcast(ctx, s.w, 1, values)
	return values[0], err
}

// heapObjects returns the number of objects that this process has allocated, or 0 without -allocs.
func (s *stage) heapObjects() uint64 {
	if !s.allocs || s.w.Rank() != 0 {
		return 0
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}

// publish reports a result on rank 0, whose clock counts.
func (s *stage) publish(r result) error {
	if s.w.Rank() != 0 {
		return nil
	}
	return s.report(r)
}
