package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/onesided/rma/bench/internal/cases"
	"github.com/onesided/rma/bench/internal/cli"
	"github.com/onesided/rma/bench/internal/device"
	"github.com/onesided/rma/bench/internal/plan"
	"github.com/onesided/rma/bench/internal/runner"
	"github.com/onesided/rma/bench/internal/table"
)

// A schemesRun is a run of schemes.
type schemesRun struct {
	*runner.Options
	request *plan.Selection
	rounds  int
	format  string
}

// run compares the schemes by one pattern after the other, each by separate ranks, or as one rank of a launcher's job.
func (o *schemesRun) run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	say, done := cli.Progress(stderr)
	defer done()
	table := &schemeTable{Command: cli.CommandLine(args), Machine: o.Machine(), Device: o.Device, Rounds: o.rounds}
	printed := runner.Reporter(o.format, stdout, stderr)
	report := func(r plan.Result) error {
		done()
		table.add(r)
		return printed(r)
	}
	err := o.eachPattern(ctx, stderr, report, say)
	if o.format != "text" || len(table.complete()) == 0 {
		return err
	}
	// The results before an error are written, too.
	if writing := table.write(stdout); err == nil {
		err = writing
	}
	return err
}

func (o *schemesRun) eachPattern(ctx context.Context, stderr io.Writer, report func(plan.Result) error, say func(string)) error {
	if device.Launched() {
		return runner.RunJoined(ctx, o.Options, o.request, report)
	}
	jobs, err := o.request.Jobs(0)
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
		say(fmt.Sprintf("pattern %d of %d: %s, %d schemes, %s", i+1, len(cells), j.Cells[0].String(), len(schemes()), table.Plural(o.rounds, "round")))
		if err := o.Start(ctx, j, stderr, report); err != nil {
			return err
		}
	}
	return nil
}

// A schemeTable is the table that schemes prints at the end.
type schemeTable struct {
	Command string
	Machine fmt.Stringer
	Device  string
	Rounds  int

	// patterns have a result of each scheme. The last may be incomplete.
	patterns [][]plan.Result
}

// add adds the next result. Results of a pattern are consecutive.
func (t *schemeTable) add(r plan.Result) {
	if r.Skipped != "" {
		return
	}
	last := len(t.patterns) - 1
	if last < 0 || t.patterns[last][0].Cell() != r.Cell() {
		t.patterns = append(t.patterns, nil)
		last++
	}
	t.patterns[last] = append(t.patterns[last], r)
}

// sideBySide is the number of patterns in a line.
const sideBySide = 4

// complete returns the patterns without one that was cut off.
func (t *schemeTable) complete() [][]plan.Result {
	if last := len(t.patterns) - 1; last >= 0 && len(t.patterns[last]) < len(schemes()) {
		return t.patterns[:last]
	}
	return t.patterns
}

func (t *schemeTable) write(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s\n%s\n", t.Command, t.Machine)
	fmt.Fprintf(&b, "Device %s. Medians of %s, in each of which every scheme has a loop of about %v, or of %d epochs if they are long, in a window of its own.\n", t.Device, table.Plural(t.Rounds, "round"), usualTempo.visit, steadyTurns)
	b.WriteString("ratio: the time taken to that of the best fixed scheme within a round, of which the median counts: more is worse.\n")
	b.WriteString("adaptive is the default; all has every way and does not adapt; way=off is all but that way; at-once defers nothing.\n")
	for some := range slices.Chunk(t.complete(), sideBySide) {
		b.WriteString("\n")
		t.writeBlock(&b, some)
	}
	b.WriteString("\n")
	if worst := t.worst(); worst != nil {
		fmt.Fprintf(&b, "adaptive takes at worst %s times as long as the best fixed scheme: in %s, where that is %s.\n", table.Ratio(worst[0].Ratio.Median), worst[0].Cell(), bestOf(worst))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// writeBlock writes patterns side by side, a scheme a line.
func (t *schemeTable) writeBlock(b *strings.Builder, some [][]plan.Result) {
	names, units := []string{"scheme"}, []string{""}
	for _, p := range some {
		names, units = append(names, p[0].Cell(), ""), append(units, p[0].Unit, "ratio")
	}
	lines := [][]string{names, units}
	for i, first := range some[0] {
		line := []string{first.Scheme}
		for _, p := range some {
			text := table.Ratio(p[i].Ratio.Median)
			if p[i].Best {
				text = "best"
			}
			line = append(line, table.Value(&p[i].Value), text)
		}
		lines = append(lines, line)
	}
	table.Align(b, lines, func(i int) bool { return i > 0 })
}

// worst returns the pattern in which the adaptive scheme is worst in relation to the best fixed one, or nil if there
// is no ratio.
func (t *schemeTable) worst() []plan.Result {
	var worst []plan.Result
	for _, p := range t.complete() {
		if m := p[0].Ratio.Median; m != nil && (worst == nil || *m > *worst[0].Ratio.Median) {
			worst = p
		}
	}
	return worst
}

// bestOf returns the name of the best fixed scheme of a pattern.
func bestOf(pattern []plan.Result) string {
	return pattern[slices.IndexFunc(pattern, func(r plan.Result) bool { return r.Best })].Scheme
}
