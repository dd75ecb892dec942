package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/onesided/rma/bench/internal/cases"
	"github.com/onesided/rma/bench/internal/cli"
	"github.com/onesided/rma/bench/internal/device"
	"github.com/onesided/rma/bench/internal/experiments/kernels"
	"github.com/onesided/rma/bench/internal/experiments/regression"
	"github.com/onesided/rma/bench/internal/experiments/scale"
	"github.com/onesided/rma/bench/internal/experiments/schemes"
	"github.com/onesided/rma/bench/internal/experiments/switches"
	"github.com/onesided/rma/bench/internal/paper"
	"github.com/onesided/rma/bench/internal/peers"
	"github.com/onesided/rma/bench/internal/report"
	"github.com/onesided/rma/bench/internal/runner"
	"github.com/onesided/rma/internal/interrupt"
	"github.com/onesided/rma/world"
)

func main() {
	ctx, stop := interrupt.Context(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// run is the program. It returns the exit status: 2 for wrong usage, 1 for a later failure, runner.StatusOfPeer if another
// rank failed.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	err := command(ctx, args, stdout, stderr)
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case ctx.Err() != nil:
		// Other failures are results of the end.
		fmt.Fprintf(stderr, "bench: ended early: %v\n", context.Cause(ctx))
		return 1
	case errors.Is(err, cli.ErrUsage):
		fmt.Fprintln(stderr, err)
		return 2
	}
	fmt.Fprintln(stderr, err)
	if other := (*world.PeerError)(nil); errors.As(err, &other) || errors.Is(err, cases.ErrSocketClosed) {
		return runner.StatusOfPeer
	}
	return 1
}

// command is the program, except for printing errors.
func command(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) > 0 && args[0] == cli.PaperCommand {
		return paper.Run(ctx, args[1:], stdout, stderr)
	}
	if len(args) > 0 && args[0] == cli.ScaleCommand {
		return scale.Run(ctx, args[1:], stdout, stderr)
	}
	if len(args) > 0 && args[0] == cli.ReportCommand {
		return report.Run(ctx, args[1:], stdout, stderr)
	}
	if len(args) > 0 && args[0] == cli.SwitchesCommand {
		return switches.Run(ctx, args[1:], stdout, stderr)
	}
	if len(args) > 0 && args[0] == cli.KernelsCommand {
		return kernels.Run(ctx, args[1:], stdout, stderr)
	}
	if len(args) > 0 && args[0] == cli.GateCommand {
		return regression.Run(ctx, ".", args[1:], stdout, stderr)
	}
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	return o.run(ctx, args, stdout, stderr)
}

func (o *options) run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if o.list {
		return writeList(stdout)
	}
	if err := o.CheckCard(); err != nil {
		return err
	}
	if o.schemes {
		return (&schemes.Comparison{Options: &o.Options, Request: &o.Selection, Rounds: o.rounds, Format: o.format}).Run(ctx, args, stdout, stderr)
	}
	report := runner.Reporter(o.format, stdout, stderr)
	switch {
	case runner.AtSocket():
		return runner.RunSocket(ctx, &o.Options, &o.Selection, report)
	case device.Launched():
		return runner.RunJoined(ctx, &o.Options, &o.Selection, report)
	}
	jobs, err := o.Jobs(0)
	if err != nil {
		return err
	}
	if o.peers {
		return (&peers.Comparison{Options: &o.Options, Jobs: jobs, Ranks: o.Ranks, Rounds: o.rounds, Format: o.format}).Run(ctx, args, stdout, stderr)
	}
	if o.Profile != "" && len(jobs) > 1 {
		return cli.Usagef("-cpuprofile is of one job, and these cases are %d jobs: name the cases", len(jobs))
	}
	if o.Trace != "" && len(jobs) > 1 {
		return cli.Usagef("-trace is of one job, and these cases are %d jobs: name the cases", len(jobs))
	}
	for _, j := range jobs {
		if err := o.Start(ctx, j, stderr, report); err != nil {
			return err
		}
	}
	return nil
}
