package main

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// A stage is what one rank of a job needs to measure.
type stage struct {
	w        *world.World
	repeat   int
	allocs   bool
	settings settings
	// report takes each result of rank 0.
	report func(result) error
}

// run measures cells, which every rank does together: first those under LockAll,
// then those between fences, then the rest, as in peers/mpi_rma.c.
func (s *stage) run(ctx context.Context, cells []cell) error {
	scenes := make(map[scene][]cell)
	addends, windows := 0, false
	for _, one := range cells {
		scenes[one.c.scene] = append(scenes[one.c.scene], one)
		windows = windows || one.c.scene != alone
		if one.c.each == 8 {
			addends = max(addends, one.size/8)
		}
	}
	if windows {
		b, err := newBoard(ctx, s.w, addends, s.settings.options)
		if err != nil {
			return err
		}
		if err := s.runScenes(ctx, b, scenes); err != nil {
			return err
		}
		if err := b.close(); err != nil {
			return err
		}
	}
	for _, one := range scenes[alone] {
		values, err := one.c.measure(ctx, s)
		if err != nil {
			return fmt.Errorf("bench: %s with %d ranks: %w", one.c.name, one.size, err)
		}
		if err := s.publish(newResult(one, s.w.Size(), values)); err != nil {
			return err
		}
	}
	return nil
}

func (s *stage) runScenes(ctx context.Context, b *board, scenes map[scene][]cell) error {
	if cells := scenes[passive]; len(cells) > 0 {
		if err := b.bytes.LockAll(ctx); err != nil {
			return err
		}
		if err := s.measureAll(ctx, b, cells); err != nil {
			return err
		}
		if err := b.bytes.UnlockAll(ctx); err != nil {
			return err
		}
	}
	if cells := scenes[fence]; len(cells) > 0 {
		if err := b.bytes.Fence(ctx); err != nil {
			return err
		}
		if err := s.measureAll(ctx, b, cells); err != nil {
			return err
		}
		if err := b.bytes.Fence(ctx, window.NoSucceed); err != nil {
			return err
		}
	}
	return s.measureAll(ctx, b, scenes[pscw])
}

func (s *stage) measureAll(ctx context.Context, b *board, cells []cell) error {
	for _, one := range cells {
		if why := s.settings.forbids(one); why != "" {
			if err := s.publish(result{Case: one.c.name, Size: one.size, Unit: one.c.unit, Ranks: s.w.Size(), Skipped: why}); err != nil {
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

// measure times the loops of one cell.
func (s *stage) measure(ctx context.Context, b *board, one cell) (result, error) {
	if one.c.sample != nil {
		values, err := one.c.sample(ctx, s, b, one.size)
		if err != nil {
			return result{}, err
		}
		return newResult(one, s.w.Size(), values), nil
	}
	f := s.part(one.c)
	turns := one.c.iterations(one.size)
	values := make([]float64, 0, s.repeat)
	var allocs uint64
	for range s.repeat {
		// Calls that never have to wait never look at ctx.
		if ctx.Err() != nil {
			return result{}, context.Cause(ctx)
		}
		if err := loop(ctx, b, f, one.size, turns/10+1); err != nil {
			return result{}, err
		}
		before := s.heapObjects()
		if err := s.w.Barrier(ctx); err != nil {
			return result{}, err
		}
		start := time.Now()
		err := loop(ctx, b, f, one.size, turns)
		took := time.Since(start)
		if err != nil {
			return result{}, err
		}
		if err := s.w.Barrier(ctx); err != nil {
			return result{}, err
		}
		allocs += s.heapObjects() - before
		values = append(values, one.c.value(took.Seconds()/float64(turns), one.size))
	}
	r := newResult(one, s.w.Size(), values)
	if s.allocs {
		r.Allocs = &allocs
	}
	return r, nil
}

// part is this rank's side of a case, nil if it only waits in the barrier.
func (s *stage) part(c *benchCase) step {
	switch {
	case s.w.Rank() == 0:
		return c.origin
	case s.w.Rank() == 1 || c.scene == fence:
		return c.target
	}
	return nil
}

func loop(ctx context.Context, b *board, f step, n, turns int) error {
	if f == nil {
		return nil
	}
	for range turns {
		if err := f(ctx, b, n); err != nil {
			return err
		}
	}
	return nil
}

// heapObjects is how many objects this process has allocated, 0 if nobody asked.
func (s *stage) heapObjects() uint64 {
	if !s.allocs || s.w.Rank() != 0 {
		return 0
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}

// publish reports a result if this is rank 0, whose clock counts.
func (s *stage) publish(r result) error {
	if s.w.Rank() != 0 {
		return nil
	}
	return s.report(r)
}
