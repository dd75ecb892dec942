package schemes

import (
	"context"
	"fmt"
	"io"

	"github.com/onesided/rma/bench/internal/cases"
	"github.com/onesided/rma/bench/internal/cli"
	"github.com/onesided/rma/bench/internal/device"
	"github.com/onesided/rma/bench/internal/plan"
	"github.com/onesided/rma/bench/internal/runner"
	"github.com/onesided/rma/bench/internal/table"
)

// A Comparison is a run of schemes.
type Comparison struct {
	*runner.Options
	Request *plan.Selection
	Rounds  int
	Format  string
}

// Run compares the schemes by one pattern after the other, each by separate ranks, or as one rank of a launcher's job.
func (o *Comparison) Run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	show, done := cli.Progress(stderr)
	defer done()
	results := &Table{Command: cli.CommandLine(args), Machine: o.Machine(), Device: o.Device, Rounds: o.Rounds}
	printed := runner.Reporter(o.Format, stdout, stderr)
	report := func(r plan.Result) error {
		done()
		results.Add(r)
		return printed(r)
	}
	err := o.eachPattern(ctx, stderr, report, show)
	if o.Format != "text" || len(results.Complete()) == 0 {
		return err
	}
	// The results before an error are written, too.
	if writing := results.write(stdout); err == nil {
		err = writing
	}
	return err
}

func (o *Comparison) eachPattern(ctx context.Context, stderr io.Writer, report func(plan.Result) error, show func(string)) error {
	if device.Launched() {
		return runner.RunJoined(ctx, o.Options, o.Request, report)
	}
	jobs, err := o.Request.Jobs(0)
	if err != nil {
		return err
	}
	var cells []plan.Job
	for _, j := range jobs {
		for _, one := range j.Cells {
			cells = append(cells, plan.Job{Ranks: j.Ranks, Cells: []cases.Cell{one}})
		}
	}
	if o.Profile != "" && len(cells) > 1 {
		return cli.Usagef("-cpuprofile is of one job, and these patterns are %d jobs: name one", len(cells))
	}
	for i, j := range cells {
		show(fmt.Sprintf("pattern %d of %d: %s, %d schemes, %s", i+1, len(cells), j.Cells[0].String(), len(All()), table.Plural(o.Rounds, "round")))
		if err := o.Start(ctx, j, stderr, report); err != nil {
			return err
		}
	}
	return nil
}
