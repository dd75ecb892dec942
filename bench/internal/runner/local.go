package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/pprof"

	"github.com/onesided/rma/bench/internal/cases"
	"github.com/onesided/rma/bench/internal/device"
	"github.com/onesided/rma/bench/internal/plan"
	"github.com/onesided/rma/bench/internal/program"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/shm"
	"github.com/onesided/rma/world"
)

// runLocal measures a job whose ranks are goroutines, which share memory whatever the environment says.
func runLocal(ctx context.Context, o *Options, j plan.Job, report func(plan.Result) error) error {
	fabric := shm.NewFabric()
	return program.WithTimeout(ctx, o.Timeout, func(ctx context.Context) error {
		return world.Run(ctx, j.Ranks, func(ctx context.Context, w *world.World) error {
			return measureRank(ctx, o, w, j.Cells, func() (verbs.Device, error) { return fabric.Open() }, report)
		}, append(o.Settings.JobOptions(), world.WithDevice(device.Shm))...)
	})
}

// measureRank measures cells as one rank of w. open opens a device beside that of w.
func measureRank(ctx context.Context, o *Options, w *world.World, cells []cases.Cell, open func() (verbs.Device, error), report func(plan.Result) error) error {
	s := &Rank{
		Rank: cases.Rank{World: w, Repeat: o.Repeat, Shorten: o.Shorten, Virtual: device.IsVirtual(w), WindowOptions: o.Settings.WindowOptions},
		open: open, allocs: o.Allocs, percentiles: o.Percentiles, settings: o.Settings, report: report,
	}
	return profiled(o, w.Rank(), func() error {
		if o.Measure != nil {
			return o.Measure(ctx, s, cells)
		}
		return s.run(ctx, cells)
	})
}

// profiled runs a rank with the profile that o requests.
func profiled(o *Options, rank int, run func() error) error {
	if o.Profile == "" || rank != 0 {
		return run()
	}
	file, err := os.Create(o.Profile)
	if err != nil {
		return fmt.Errorf("bench: -cpuprofile: %w", err)
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return errors.Join(fmt.Errorf("bench: -cpuprofile: %w", err), file.Close())
	}
	err = run()
	pprof.StopCPUProfile()
	return errors.Join(err, file.Close())
}
