package runner

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"runtime"
	"time"

	"github.com/onesided/rma/bench/internal/cases"
	"github.com/onesided/rma/bench/internal/machine"
	"github.com/onesided/rma/bench/internal/plan"
	"github.com/onesided/rma/bench/internal/toggles"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// A Rank is what one rank of a job needs to measure.
type Rank struct {
	cases.Rank
	// open opens another device like that of w.
	open   func() (verbs.Device, error)
	allocs bool
	// percentiles is set if percentiles are requested.
	percentiles bool
	settings    toggles.Settings
	// report receives each result on rank 0.
	report func(plan.Result) error
}

// run measures cells. It is collective. First come the cells under LockAll, then those between fences, then the rest,
// as in peers/mpi_rma.c.
func (s *Rank) run(ctx context.Context, cells []cases.Cell) error {
	kinds := make(map[cases.Kind][]cases.Cell)
	for _, one := range cells {
		kinds[one.Case.Kind] = append(kinds[one.Case.Kind], one)
	}
	for _, together := range [][]cases.Kind{{cases.Passive, cases.Fence, cases.PSCW}, {cases.Tables}, {cases.Collective}, {cases.Messages}} {
		if err := s.runKinds(ctx, kinds, together); err != nil {
			return err
		}
	}
	for _, one := range kinds[cases.Alone] {
		if why := s.Forbids(one); why != "" {
			if err := s.Publish(plan.Skipped(one, s.World.Size(), why)); err != nil {
				return err
			}
			continue
		}
		values, err := one.Case.Measure(ctx, &s.Rank)
		if err != nil {
			return fmt.Errorf("bench: %s with %d ranks: %w", one.Case.Name, one.Size, err)
		}
		if err := s.Publish(plan.NewResult(one, s.World.Size(), values)); err != nil {
			return err
		}
	}
	return nil
}

// cases.New makes the windows and buffers for cells.
func (s *Rank) NewBuffers(ctx context.Context, cells []cases.Cell, options []window.Option) (*cases.Buffers, error) {
	b, err := cases.New(ctx, s.World, cells, options, s.settings.Unregistered)
	if err == nil && !s.Virtual && s.Shorten <= 1 {
		b.Touch()
	}
	return b, err
}

// runKinds measures the cells of kinds that share Buffers.
func (s *Rank) runKinds(ctx context.Context, kinds map[cases.Kind][]cases.Cell, together []cases.Kind) error {
	var cells []cases.Cell
	for _, each := range together {
		cells = append(cells, kinds[each]...)
	}
	if len(cells) == 0 {
		return nil
	}
	b, err := s.NewBuffers(ctx, cells, s.WindowOptions)
	if err != nil {
		return err
	}
	if together[0] == cases.Messages {
		if err := b.Connect(ctx, cells, s.open, s.settings.Tuning.NoPipes); err != nil {
			return err
		}
	}
	for _, each := range together {
		if len(kinds[each]) == 0 {
			continue
		}
		if err := b.Begin(ctx, each); err != nil {
			return err
		}
		if err := s.measureAll(ctx, b, kinds[each]); err != nil {
			return err
		}
		if err := b.End(ctx, each); err != nil {
			return err
		}
	}
	return b.Close()
}

func (s *Rank) measureAll(ctx context.Context, b *cases.Buffers, cells []cases.Cell) error {
	for _, one := range cells {
		if why := s.Forbids(one); why != "" {
			if err := s.Publish(plan.Skipped(one, s.World.Size(), why)); err != nil {
				return err
			}
			continue
		}
		r, err := s.measure(ctx, b, one)
		if err != nil {
			return fmt.Errorf("bench: %s of size %d: %w", one.Case.Name, one.Size, err)
		}
		if err := s.Publish(r); err != nil {
			return err
		}
	}
	return nil
}

// Forbids says why a cell cannot be measured. It returns "" if it can.
func (s *Rank) Forbids(one cases.Cell) string {
	why := s.settings.Forbids(one)
	if s.Virtual {
		why = cmp.Or(one.Case.NotVirtual, why)
	}
	return why
}

// iterations returns the number of iterations of a loop.
func (s *Rank) iterations(one cases.Cell) int {
	iterations := one.Case.Iterations(one.Size)
	if s.Virtual {
		iterations /= cases.VirtualIterations
	}
	return cases.Shortened(iterations, s.Shorten)
}

// measure times the loops of one cell.
func (s *Rank) measure(ctx context.Context, b *cases.Buffers, one cases.Cell) (plan.Result, error) {
	if one.Case.Sample != nil {
		values, err := one.Case.Sample(ctx, &s.Rank, b, one.Size)
		if err != nil {
			return plan.Result{}, err
		}
		return plan.NewResult(one, s.World.Size(), values), nil
	}
	iterations := s.iterations(one)
	values := make([]float64, 0, s.Repeat)
	var allocs uint64
	var best time.Duration
	for range s.Repeat {
		took, allocated, err := s.Timed(ctx, b, one, iterations)
		if err != nil {
			return plan.Result{}, err
		}
		allocs += allocated
		if best == 0 || took < best {
			best = took
		}
		values = append(values, one.Case.Value(took.Seconds()/float64(iterations), one.Size))
	}
	r := plan.NewResult(one, s.World.Size(), values)
	if math.IsInf(r.Value, 0) {
		r = plan.Skipped(one, s.World.Size(), "it takes no time")
	}
	if s.allocs {
		r.Allocs = &allocs
	}
	if s.percentiles && one.Case.HasPercentiles() {
		var err error
		if r.Percentiles, err = s.distribution(ctx, b, one, best/time.Duration(iterations)); err != nil {
			return plan.Result{}, err
		}
	}
	return r, nil
}

// Timed returns the time of one loop of a cell, and the number of objects that it allocated. A warm-up of a tenth of
// its iterations precedes it.
func (s *Rank) Timed(ctx context.Context, b *cases.Buffers, one cases.Cell, iterations int) (took time.Duration, allocs uint64, err error) {
	// Calls that never wait never look at ctx.
	if ctx.Err() != nil {
		return 0, 0, context.Cause(ctx)
	}
	f, warmUp := s.Step(one.Case), iterations/10+1
	if one.Case.Prepare != nil {
		if err := one.Case.Prepare(ctx, b, warmUp+iterations, one.Size); err != nil {
			return 0, 0, err
		}
	}
	if err := cases.Loop(ctx, b, f, one.Size, warmUp); err != nil {
		return 0, 0, err
	}
	allocs = s.heapObjects()
	if err := s.World.Barrier(ctx); err != nil {
		return 0, 0, err
	}
	if one.Case.OfTarget && s.Virtual {
		start := s.World.Now()
		took, err = s.TargetDelay(ctx, b, f, one.Size, iterations)
		allocs = s.heapObjects() - allocs
		s.World.Span(one.String(), start, s.World.Now())
		if err == nil {
			took, err = s.ofTarget(ctx, took)
		}
		return took, allocs, err
	}
	used := machine.ProcessorTime()
	start := s.World.Now()
	if err := cases.Loop(ctx, b, f, one.Size, iterations); err != nil {
		return 0, 0, err
	}
	took = s.World.Now() - start
	if err := s.World.Barrier(ctx); err != nil {
		return 0, 0, err
	}
	allocs = s.heapObjects() - allocs
	s.World.Span(one.String(), start, start+took)
	if one.Case.OfTarget {
		took, err = s.ofTarget(ctx, machine.ProcessorTime()-used)
	}
	return took, allocs, err
}

// ofTarget returns rank 1's value.
func (s *Rank) ofTarget(ctx context.Context, value time.Duration) (time.Duration, error) {
	values := []time.Duration{value}
	err := world.Broadcast(ctx, s.World, 1, values)
	return values[0], err
}

// heapObjects returns the number of objects that this process has allocated, or 0 without -allocs.
func (s *Rank) heapObjects() uint64 {
	if !s.allocs || s.World.Rank() != 0 {
		return 0
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}

// Publish reports a result on rank 0, whose clock counts.
func (s *Rank) Publish(r plan.Result) error {
	if s.World.Rank() != 0 {
		return nil
	}
	return s.report(r)
}
