package main

import (
	"context"
	"fmt"
	"io"

	"github.com/onesided/rma/bench/internal/cases"
	"github.com/onesided/rma/bench/internal/device"
	"github.com/onesided/rma/bench/internal/plan"
)

// statusOfPeer is the exit status of a rank that failed because another did.
const statusOfPeer = 3

// start measures a job on separate ranks.
func (o *options) start(ctx context.Context, j plan.Job, stderr io.Writer, report func(plan.Result) error) error {
	unable := cases.SocketsUnable
	if o.card != nil {
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
	case o.card != nil:
		return runSimulated(ctx, o, j, report)
	case j.Cells[0].Case.Kind != cases.Raw && o.device == device.Local:
		return runLocal(ctx, o, j, report)
	}
	return runProcesses(ctx, o, j, stderr, report)
}

// reporter returns a function that prints results as they arrive, and prints to stderr why some are missing.
func reporter(format string, stdout, stderr io.Writer) func(plan.Result) error {
	printed := plan.Printer(format, stdout)
	return func(r plan.Result) error {
		if r.Skipped != "" && format == "text" {
			fmt.Fprintf(stderr, "bench: %s %d is left out: %s\n", r.Case, r.Size, r.Skipped)
		}
		return printed(r)
	}
}

// collect measures a job. With an error it returns the results before the error.
func (o *options) collect(ctx context.Context, j plan.Job, stderr io.Writer) ([]plan.Result, error) {
	var results []plan.Result
	err := o.start(ctx, j, stderr, func(r plan.Result) error {
		results = append(results, r)
		return nil
	})
	return results, err
}
