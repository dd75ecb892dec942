package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"github.com/onesided/rma/bench/internal/cli"
	"github.com/onesided/rma/internal/interrupt"
	"github.com/onesided/rma/world"
)

func main() {
	ctx, stop := interrupt.Context(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// statusOfPeer is the exit status of a rank that failed because another did.
const statusOfPeer = 3

// run is the program. It returns the exit status: 2 for wrong usage, 1 for a later failure, statusOfPeer if another
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
	if other := (*world.PeerError)(nil); errors.As(err, &other) || errors.Is(err, errOtherEnd) {
		return statusOfPeer
	}
	return 1
}

// command is the program, except for printing errors.
func command(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) > 0 && args[0] == cli.Paper {
		return runPaper(ctx, args[1:], stdout, stderr)
	}
	if len(args) > 0 && args[0] == cli.Scale {
		return runScale(ctx, args[1:], stdout, stderr)
	}
	if len(args) > 0 && args[0] == cli.Report {
		return runReport(ctx, args[1:], stdout, stderr)
	}
	if len(args) > 0 && args[0] == cli.Switches {
		return runSwitches(ctx, args[1:], stdout, stderr)
	}
	if len(args) > 0 && args[0] == cli.Kernels {
		return runKernels(ctx, args[1:], stdout, stderr)
	}
	if len(args) > 0 && args[0] == cli.Gate {
		return runGate(ctx, ".", args[1:], stdout, stderr)
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
	if err := o.checkCard(); err != nil {
		return err
	}
	if o.schemes {
		return o.runSchemes(ctx, args, stdout, stderr)
	}
	report := o.reporter(stdout, stderr)
	switch {
	case atSocket():
		return runSocket(ctx, o, report)
	case launched():
		return runJoined(ctx, o, report)
	}
	jobs, err := plan(o, 0)
	if err != nil {
		return err
	}
	if o.peers {
		return o.comparePeers(ctx, args, jobs, stdout, stderr)
	}
	if o.profile != "" && len(jobs) > 1 {
		return cli.Usagef("-cpuprofile is of one job, and these cases are %d jobs: name the cases", len(jobs))
	}
	if o.trace != "" && len(jobs) > 1 {
		return cli.Usagef("-trace is of one job, and these cases are %d jobs: name the cases", len(jobs))
	}
	for _, j := range jobs {
		if err := o.start(ctx, j, stderr, report); err != nil {
			return err
		}
	}
	return nil
}

// start measures a job on separate ranks.
func (o *options) start(ctx context.Context, j launch, stderr io.Writer, report func(result) error) error {
	unable := rawUnable
	if o.card != nil {
		unable = j.cells[0].c.real
	}
	switch {
	case j.cells[0].c.scene == raw && unable != "":
		for _, one := range j.cells {
			if err := report(left(one, j.ranks, unable)); err != nil {
				return err
			}
		}
		return nil
	case o.card != nil:
		return runSimulated(ctx, o, j, report)
	case j.cells[0].c.scene != raw && o.device == deviceLocal:
		return runLocal(ctx, o, j, report)
	}
	return runProcesses(ctx, o, j, stderr, report)
}

// reporter returns a function that prints results as they arrive, and prints to stderr why some are missing.
func (o *options) reporter(stdout, stderr io.Writer) func(result) error {
	printed := printer(o.format, stdout)
	return func(r result) error {
		if r.Skipped != "" && o.format == "text" {
			fmt.Fprintf(stderr, "bench: %s %d is left out: %s\n", r.Case, r.Size, r.Skipped)
		}
		return printed(r)
	}
}

// comparePeers is the run of -peers.
func (o *options) comparePeers(ctx context.Context, args []string, jobs []launch, stdout, stderr io.Writer) error {
	found, missing := findPeers(ctx)
	if len(found) == 0 {
		return fmt.Errorf("bench: -peers has nobody to compare with: %s", strings.Join(missing, "; "))
	}
	dir, err := os.MkdirTemp("", "rma-bench-")
	if err != nil {
		return fmt.Errorf("bench: no place for the peers' programs: %w", err)
	}
	defer os.RemoveAll(dir)
	say, done := cli.Progress(stderr)
	defer done()
	c := &comparison{
		Command: cli.CommandLine(args), Machine: thisMachine(), Ours: deviceAs(o.device, cmp.Or(o.ranks, 2)),
		Rounds: o.rounds, Repeat: o.repeat, Missing: missing,
	}
	contestants := []contestant{{ours, func(ctx context.Context, j launch) ([]result, error) { return o.collect(ctx, j, stderr) }}}
	for _, p := range found {
		say("compiling with " + p.compiler)
		if err := p.build(ctx, dir); err != nil {
			if ctx.Err() != nil {
				return err
			}
			c.Missing = append(c.Missing, leftOutPeer(p, err))
			continue
		}
		c.Peers = append(c.Peers, p.title+" "+p.version+p.over(o.device))
		contestants = append(contestants, contestant{p.name, func(ctx context.Context, j launch) ([]result, error) { return p.run(ctx, j, o) }})
	}
	if len(contestants) == 1 {
		return fmt.Errorf("bench: -peers has nobody to compare with: %s", strings.Join(c.Missing, "; "))
	}
	for _, one := range contestants {
		c.columns = append(c.columns, one.name)
	}
	rows, err := compare(ctx, o.device, jobs, contestants, o.rounds, say)
	c.rows = rows
	c.end(err)
	done()
	write := c.writeText
	if o.format == "json" {
		write = c.writeJSON
	}
	if err := errors.Join(err, write(stdout)); err != nil {
		return err
	}
	return c.ourFailures()
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

// ourFailures returns an error if a cell of ours, or one measured beside it, lacks values for another reason than the
// switches.
func (c *comparison) ourFailures() error {
	for _, r := range c.rows {
		if column := r.Columns[ours]; column.Failed {
			return fmt.Errorf("bench: %s %d failed here: %s", r.Case, r.Size, column.Reason)
		}
		for _, v := range r.Goals {
			if v.Of != nil && v.Of.Failed {
				return fmt.Errorf("bench: %s %d, measured for %s, failed here: %s", v.goal.of, r.Size, r.Case, v.Of.Reason)
			}
		}
	}
	return nil
}
