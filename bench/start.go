package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/pprof"
	"strings"

	"github.com/onesided/rma/bench/internal/cases"
	"github.com/onesided/rma/bench/internal/cli"
	"github.com/onesided/rma/bench/internal/device"
	"github.com/onesided/rma/bench/internal/plan"
	"github.com/onesided/rma/bench/internal/program"
	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/ibv"
	"github.com/onesided/rma/verbs/shm"
	"github.com/onesided/rma/world"
)

// checkCard returns an error if ranks that this process starts will not have the requested card.
func (o *options) checkCard() error {
	if o.device != device.IBV || device.Launched() || atSocket() {
		return nil
	}
	if err := ibv.Usable(ibv.FromEnvironment()); err != nil {
		return fmt.Errorf("bench: -device %s: %w", o.device, err)
	}
	return nil
}

// runLocal measures a job whose ranks are goroutines, which share memory whatever the environment says.
func runLocal(ctx context.Context, o *options, j plan.Job, report func(plan.Result) error) error {
	fabric := shm.NewFabric()
	return program.WithTimeout(ctx, o.timeout, func(ctx context.Context) error {
		return world.Run(ctx, j.Ranks, func(ctx context.Context, w *world.World) error {
			return measureRank(ctx, o, w, j.Cells, func() (verbs.Device, error) { return fabric.Open() }, report)
		}, append(o.settings.JobOptions(), world.WithDevice(device.Shm))...)
	})
}

// runJoined measures what r requests as a rank that a launcher started.
func runJoined(ctx context.Context, o *options, r *plan.Selection, report func(plan.Result) error) error {
	return program.WithTimeout(ctx, o.timeout, func(ctx context.Context) error {
		joins := o.settings.JobOptions()
		if o.trace != "" {
			joins = append(joins, world.WithTrace(o.trace))
		}
		w, err := world.Init(ctx, joins...)
		if err != nil {
			return err
		}
		err = checkLaunched(o, r.Ranks, w.Size(), job.Of(w).Device().Attributes().Name)
		if err == nil {
			var jobs []plan.Job
			if jobs, err = r.Jobs(w.Size()); err == nil {
				err = measureRank(ctx, o, w, jobs[0].Cells, func() (verbs.Device, error) { return openBeside(w, o.settings.Tuning.NoSockets) }, report)
			}
		}
		return errors.Join(err, w.Close())
	})
}

// checkLaunched rejects flags that contradict the launcher, which started size ranks, and the environment, by which
// the ranks chose their device. ranks is the requested number, or 0.
func checkLaunched(o *options, ranks, size int, card string) error {
	// For several cards it is the kind of the first.
	deviceName := card
	if end := strings.IndexAny(card, ":+"); end >= 0 {
		deviceName = card[:end]
	}
	switch {
	case ranks != 0 && ranks != size:
		return cli.Usagef("-n %d: the launcher started %d ranks", ranks, size)
	case o.card != nil:
		return cli.Usagef("-device %s has its ranks in one process: run it without a launcher", o.device)
	}
	if o.refuses != nil {
		if err := o.refuses(deviceName); err != nil {
			return err
		}
	}
	if o.deviceGiven && o.device != deviceName {
		return cli.Usagef("-device %s: the ranks use %s: %s=%q in their environment, not %q", o.device, deviceName, device.Variable, os.Getenv(device.Variable), o.device)
	}
	return nil
}

// measureRank measures cells as one rank of w. open opens a device beside that of w.
func measureRank(ctx context.Context, o *options, w *world.World, cells []cases.Cell, open func() (verbs.Device, error), report func(plan.Result) error) error {
	s := &stage{
		Rank: cases.Rank{World: w, Repeat: o.repeat, Shorten: o.shorten, Virtual: device.IsVirtual(w), WindowOptions: o.settings.WindowOptions},
		open: open, allocs: o.allocs, tails: o.percentiles, settings: o.settings, report: report,
	}
	return profiled(o, w.Rank(), func() error {
		if o.measure != nil {
			return o.measure(ctx, s, cells)
		}
		return s.run(ctx, cells)
	})
}

// profiled runs a rank with the profile that o requests.
func profiled(o *options, rank int, run func() error) error {
	if o.profile == "" || rank != 0 {
		return run()
	}
	file, err := os.Create(o.profile)
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
