package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/onesided/rma/bench/internal/cli"
	"github.com/onesided/rma/bench/internal/device"
	"github.com/onesided/rma/bench/internal/plan"
	"github.com/onesided/rma/bench/internal/program"
	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/ibv"
	"github.com/onesided/rma/verbs/shm"
	"github.com/onesided/rma/verbs/tcp"
	"github.com/onesided/rma/world"
)

// RunJoined measures what r requests as a rank that a launcher started.
func RunJoined(ctx context.Context, o *Options, r *plan.Selection, report func(plan.Result) error) error {
	return program.WithTimeout(ctx, o.Timeout, func(ctx context.Context) error {
		joins := o.Settings.JobOptions()
		if o.Trace != "" {
			joins = append(joins, world.WithTrace(o.Trace))
		}
		w, err := world.Init(ctx, joins...)
		if err != nil {
			return err
		}
		err = checkLaunched(o, r.Ranks, w.Size(), job.Of(w).Device().Attributes().Name)
		if err == nil {
			var jobs []plan.Job
			if jobs, err = r.Jobs(w.Size()); err == nil {
				err = measureRank(ctx, o, w, jobs[0].Cells, func() (verbs.Device, error) { return openBeside(w, o.Settings.Tuning.NoSockets) }, report)
			}
		}
		return errors.Join(err, w.Close())
	})
}

// checkLaunched rejects flags that contradict the launcher, which started size ranks, and the environment, by which
// the ranks chose their device. ranks is the requested number, or 0.
func checkLaunched(o *Options, ranks, size int, card string) error {
	// For several cards it is the kind of the first.
	deviceName := card
	if end := strings.IndexAny(card, ":+"); end >= 0 {
		deviceName = card[:end]
	}
	switch {
	case ranks != 0 && ranks != size:
		return cli.Usagef("-n %d: the launcher started %d ranks", ranks, size)
	case o.Card != nil:
		return cli.Usagef("-device %s has its ranks in one process: run it without a launcher", o.Device)
	}
	if o.Refuses != nil {
		if err := o.Refuses(deviceName); err != nil {
			return err
		}
	}
	if o.DeviceGiven && o.Device != deviceName {
		return cli.Usagef("-device %s: the ranks use %s: %s=%q in their environment, not %q", o.Device, deviceName, device.Variable, os.Getenv(device.Variable), o.Device)
	}
	return nil
}

// openBeside opens another device of the kind by which the processes of a job on this machine reach each other. Over
// TCP it leaves out some optimizations.
func openBeside(w *world.World, without tcp.Optimization) (verbs.Device, error) {
	kind, _, _ := strings.Cut(job.Of(w).Device().Attributes().Name, ":")
	switch kind {
	case device.Shm:
		return shm.Open(shm.Options{})
	case device.TCP:
		return tcp.Open(tcp.Options{Without: without})
	case device.IBV:
		return ibv.Open(ibv.FromEnvironment())
	}
	return nil, fmt.Errorf("bench: messages go over %s, %s or %s, and the ranks use %s", device.Shm, device.TCP, device.IBV, kind)
}
