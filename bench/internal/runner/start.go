package runner

import (
	"context"
	"fmt"
	"io"

	"github.com/onesided/rma/bench/internal/cases"
	"github.com/onesided/rma/bench/internal/device"
	"github.com/onesided/rma/bench/internal/plan"
	"github.com/onesided/rma/verbs/ibv"
)

// StatusOfPeer is the exit status of a rank that failed because another did.
const StatusOfPeer = 3

// Start measures a job on separate ranks.
func (o *Options) Start(ctx context.Context, j plan.Job, stderr io.Writer, report func(plan.Result) error) error {
	unable := cases.SocketsUnable
	if o.Card != nil {
		unable = j.Cells[0].Case.NotVirtual
	}
	switch {
	case j.Cells[0].Case.Kind == cases.Raw && unable != "":
		for _, one := range j.Cells {
			if err := report(plan.Skipped(one, j.Ranks, unable)); err != nil {
				return err
			}
		}
		return nil
	case o.Card != nil:
		return RunSimulated(ctx, o, j, report)
	case j.Cells[0].Case.Kind != cases.Raw && o.Device == device.Local:
		return runLocal(ctx, o, j, report)
	}
	return runProcesses(ctx, o, j, stderr, report)
}

// Reporter returns a function that prints results as they arrive, and prints to stderr why some are missing.
func Reporter(format string, stdout, stderr io.Writer) func(plan.Result) error {
	printed := plan.Printer(format, stdout)
	return func(r plan.Result) error {
		if r.Skipped != "" && format == "text" {
			fmt.Fprintf(stderr, "bench: %s %d is left out: %s\n", r.Case, r.Size, r.Skipped)
		}
		return printed(r)
	}
}

// Collect measures a job. With an error it returns the results before the error.
func (o *Options) Collect(ctx context.Context, j plan.Job, stderr io.Writer) ([]plan.Result, error) {
	var results []plan.Result
	err := o.Start(ctx, j, stderr, func(r plan.Result) error {
		results = append(results, r)
		return nil
	})
	return results, err
}

// CheckCard returns an error if ranks that this process starts will not have the requested card.
func (o *Options) CheckCard() error {
	if o.Device != device.IBV || device.Launched() || AtSocket() {
		return nil
	}
	if err := ibv.Usable(ibv.FromEnvironment()); err != nil {
		return fmt.Errorf("bench: -device %s: %w", o.Device, err)
	}
	return nil
}
