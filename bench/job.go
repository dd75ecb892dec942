package main

import (
	"context"
	"fmt"
	"io"

	"github.com/onesided/rma/bench/internal/cases"
	"github.com/onesided/rma/bench/internal/device"
)

// statusOfPeer is the exit status of a rank that failed because another did.
const statusOfPeer = 3

// start measures a job on separate ranks.
func (o *options) start(ctx context.Context, j launch, stderr io.Writer, report func(result) error) error {
	unable := cases.SocketsUnable
	if o.card != nil {
		unable = j.cells[0].Case.NotVirtual
	}
	switch {
	case j.cells[0].Case.Kind == cases.Raw && unable != "":
		for _, one := range j.cells {
			if err := report(left(one, j.ranks, unable)); err != nil {
				return err
			}
		}
		return nil
	case o.card != nil:
		return runSimulated(ctx, o, j, report)
	case j.cells[0].Case.Kind != cases.Raw && o.device == device.Local:
		return runLocal(ctx, o, j, report)
	}
	return runProcesses(ctx, o, j, stderr, report)
}

// reporter returns a function that prints results as they arrive, and prints to stderr why some are missing.
func reporter(format string, stdout, stderr io.Writer) func(result) error {
	printed := printer(format, stdout)
	return func(r result) error {
		if r.Skipped != "" && format == "text" {
			fmt.Fprintf(stderr, "bench: %s %d is left out: %s\n", r.Case, r.Size, r.Skipped)
		}
		return printed(r)
	}
}

// collect measures a job. With an error it returns the results before the error.
func (o *options) collect(ctx context.Context, j launch, stderr io.Writer) ([]result, error) {
	var results []result
	err := o.start(ctx, j, stderr, func(r result) error {
		results = append(results, r)
		return nil
	})
	return results, err
}
