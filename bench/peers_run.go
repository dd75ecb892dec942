package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/onesided/rma/bench/internal/cli"
	"github.com/onesided/rma/bench/internal/device"
	"github.com/onesided/rma/bench/internal/machine"
	"github.com/onesided/rma/bench/internal/plan"
	"github.com/onesided/rma/bench/internal/runner"
)

// A peersRun is a run of -peers.
type peersRun struct {
	*runner.Options
	jobs   []plan.Job
	ranks  int // 0: the number for which each case is made
	rounds int
	format string
}

// run compares the peers with us.
func (o *peersRun) run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
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
		Command: cli.CommandLine(args), Machine: machine.This(), Ours: device.Describe(o.Device, cmp.Or(o.ranks, 2)),
		Rounds: o.rounds, Repeat: o.Repeat, Missing: missing,
	}
	contestants := []contestant{{ours, func(ctx context.Context, j plan.Job) ([]plan.Result, error) { return o.Collect(ctx, j, stderr) }}}
	for _, p := range found {
		say("compiling with " + p.compiler)
		if err := p.build(ctx, dir); err != nil {
			if ctx.Err() != nil {
				return err
			}
			c.Missing = append(c.Missing, leftOutPeer(p, err))
			continue
		}
		c.Peers = append(c.Peers, p.title+" "+p.version+p.over(o.Device))
		contestants = append(contestants, contestant{p.name, func(ctx context.Context, j plan.Job) ([]plan.Result, error) { return p.run(ctx, j, o.Options) }})
	}
	if len(contestants) == 1 {
		return fmt.Errorf("bench: -peers has nobody to compare with: %s", strings.Join(c.Missing, "; "))
	}
	for _, one := range contestants {
		c.columns = append(c.columns, one.name)
	}
	rows, err := compare(ctx, o.Device, o.jobs, contestants, o.rounds, say)
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
