package peers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/onesided/rma/bench/internal/cli"
	"github.com/onesided/rma/bench/internal/compare"
	"github.com/onesided/rma/bench/internal/device"
	"github.com/onesided/rma/bench/internal/machine"
	"github.com/onesided/rma/bench/internal/plan"
	"github.com/onesided/rma/bench/internal/runner"
)

// A Comparison is a run of -peers.
type Comparison struct {
	*runner.Options
	Jobs   []plan.Job
	Ranks  int // 0: the number for which each case is made
	Rounds int
	Format string
}

// Run compares the peers with us.
func (o *Comparison) Run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	found, missing := Find(ctx)
	if len(found) == 0 {
		return fmt.Errorf("bench: -peers: no peer is installed: %s", strings.Join(missing, "; "))
	}
	dir, err := os.MkdirTemp("", "rma-bench-")
	if err != nil {
		return fmt.Errorf("bench: no place for the peers' programs: %w", err)
	}
	defer os.RemoveAll(dir)
	show, done := cli.Progress(stderr)
	defer done()
	c := &compare.Table{
		Command: cli.CommandLine(args), Machine: machine.This(), Ours: device.Describe(o.Device, cmp.Or(o.Ranks, 2)),
		Rounds: o.Rounds, Repeat: o.Repeat, Missing: missing,
	}
	libraries := []compare.Library{{Name: compare.Ours, Run: func(ctx context.Context, j plan.Job) ([]plan.Result, error) { return o.Collect(ctx, j, stderr) }}}
	for _, p := range found {
		show("compiling with " + p.Compiler)
		if err := p.Build(ctx, dir); err != nil {
			if ctx.Err() != nil {
				return err
			}
			c.Missing = append(c.Missing, LeftOut(p, err))
			continue
		}
		c.Peers = append(c.Peers, p.Title+" "+p.Version+p.Over(o.Device))
		libraries = append(libraries, compare.Library{Name: p.Name, Run: func(ctx context.Context, j plan.Job) ([]plan.Result, error) { return p.Run(ctx, j, o.Options) }})
	}
	if len(libraries) == 1 {
		return fmt.Errorf("bench: -peers: no peer can be measured: %s", strings.Join(c.Missing, "; "))
	}
	for _, one := range libraries {
		c.Columns = append(c.Columns, one.Name)
	}
	rows, err := compare.Run(ctx, o.Device, o.Jobs, libraries, o.Rounds, show)
	c.Rows = rows
	c.End(err)
	done()
	write := c.WriteText
	if o.Format == "json" {
		write = c.WriteJSON
	}
	if err := errors.Join(err, write(stdout)); err != nil {
		return err
	}
	return c.OurFailures()
}
