package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/internal/tuning"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/sim"
	"github.com/onesided/rma/verbs/sim/perfetto"
	"github.com/onesided/rma/world"
)

// runSimulated measures a job whose ranks are tasks of a simulator.
func runSimulated(ctx context.Context, o *options, j launch, report func(result) error) error {
	return inTime(ctx, o.timeout, func(ctx context.Context) error {
		s, err := sim.New(*o.card, o.seed)
		if err != nil {
			return err
		}
		return traced(o, s, func() error {
			return simulate(ctx, s, j.ranks, func(ctx context.Context, w *world.World) error {
				return measureRank(ctx, o, w, j.cells, func() (verbs.Device, error) { return s.Open(), nil }, report)
			}, append(o.settings.ofJob(), job.Tune(func(t *tuning.Tuning) { t.Rails = o.rails }))...)
		})
	})
}

// simulate is [world.Simulate] without warnings about calls that wait long. Seconds of virtual time are no sign of a
// fault, and a job whose ranks all wait ends with an error.
func simulate(ctx context.Context, s *sim.Simulator, ranks int, body func(ctx context.Context, w *world.World) error, options ...world.Option) error {
	return world.Simulate(ctx, s, ranks, body, append(slices.Clone(options), world.WithStall(0))...)
}

// isVirtual reports whether time is virtual for the ranks of w.
func isVirtual(w *world.World) bool { return job.Of(w).Device().Attributes().Virtual }

// traced runs a job on a simulator with the trace that o requests.
func traced(o *options, s *sim.Simulator, run func() error) error {
	if o.trace == "" {
		return run()
	}
	file, err := os.Create(o.trace)
	if err != nil {
		return fmt.Errorf("bench: -trace: %w", err)
	}
	trace := perfetto.NewWriter(file)
	s.Trace(trace.Event)
	err = run()
	s.Trace(nil)
	if failed := errors.Join(trace.Close(), file.Close()); failed != nil {
		err = errors.Join(err, fmt.Errorf("bench: -trace: %w", failed))
	}
	return err
}
