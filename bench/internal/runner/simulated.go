package runner

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/onesided/rma/bench/internal/device"
	"github.com/onesided/rma/bench/internal/plan"
	"github.com/onesided/rma/bench/internal/program"
	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/internal/tuning"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/sim"
	"github.com/onesided/rma/verbs/sim/perfetto"
	"github.com/onesided/rma/world"
)

// RunSimulated measures a job whose ranks are tasks of a simulator.
func RunSimulated(ctx context.Context, o *Options, j plan.Job, report func(plan.Result) error) error {
	return program.WithTimeout(ctx, o.Timeout, func(ctx context.Context) error {
		s, err := sim.New(*o.Card, o.Seed)
		if err != nil {
			return err
		}
		return traced(o, s, func() error {
			return device.Simulate(ctx, s, j.Ranks, func(ctx context.Context, w *world.World) error {
				return measureRank(ctx, o, w, j.Cells, func() (verbs.Device, error) { return s.Open(), nil }, report)
			}, append(o.Settings.JobOptions(), job.Tune(func(t *tuning.Tuning) { t.Rails = o.Rails }))...)
		})
	})
}

// traced runs a job on a simulator with the trace that o requests.
func traced(o *Options, s *sim.Simulator, run func() error) error {
	if o.Trace == "" {
		return run()
	}
	file, err := os.Create(o.Trace)
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
