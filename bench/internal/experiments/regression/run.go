package regression

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/onesided/rma/bench/internal/cli"
	"github.com/onesided/rma/bench/internal/device"
	"github.com/onesided/rma/bench/internal/gate"
	"github.com/onesided/rma/bench/internal/machine"
	"github.com/onesided/rma/bench/internal/table"
)

// Run is the run of gate in the work tree around dir.
func Run(ctx context.Context, dir string, args []string, stdout, stderr io.Writer) (err error) {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	if device.Launched() {
		return cli.Usagef("gate starts ranks itself: run it without a launcher")
	}
	here, err := findTree(ctx, dir, o.against)
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "rma-gate-")
	if err != nil {
		return fmt.Errorf("bench: gate: no place for the programs: %w", err)
	}
	defer os.RemoveAll(scratch)
	show, done := cli.Progress(stderr)
	defer done()
	show("building both programs")
	runner, err := here.build(ctx, scratch)
	if err != nil {
		return err
	}
	var cells []gate.Cell
	for _, c := range o.cells {
		cells = append(cells, c.cell())
	}
	if o.verbose {
		runner.log = stderr
	}
	began := time.Now()
	rows, err := gate.Run(ctx, o.plan, cells, runner, time.Now, func(line string) {
		show(fmt.Sprintf("%s; %v of %v", line, time.Since(began).Round(time.Second), o.plan.Time))
	})
	done()
	if err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s\nold: %s\nnew: %s\n", cli.CommandLine(append([]string{cli.GateCommand}, args...)), machine.This(), here.old(), here.new())
	if runner.same {
		b.WriteString("The programs are the same, byte for byte.\n")
	}
	o.write(&b, rows)
	fmt.Fprintf(&b, "%s, in %v.\n", counts(rows), time.Since(began).Round(time.Second))
	if _, err := io.WriteString(stdout, b.String()); err != nil {
		return err
	}
	return o.verdict(rows)
}

// write writes the table.
func (o *options) write(b *strings.Builder, rows []*gate.Row) {
	b.WriteString("old, new: medians of the rounds. ratio: new to old in cost, of which more is worse whatever the unit, with its interval.\n")
	fmt.Fprintf(b, "noise: how much the old program differs from itself in the median of the rounds.\n")
	fmt.Fprintf(b, "slower: by more than %s. If no cell is, a run calls one slower with a probability of %g %% at most; a cell that is slower is ok with %g %% at most.\n\n",
		inPercent(o.plan.Limit), 100*alarm, 100*miss)
	lines := [][]string{{"device", "case", "size", "unit", "old", "new", "ratio", "interval", "noise", "rounds", "verdict"}}
	var notes []string
	for _, r := range rows {
		j := r.Judgement
		line := []string{
			r.Device, r.Case, fmt.Sprint(r.Size), r.Unit, value(r.Median(gate.Old)), value(r.Median(gate.New)),
			"-", "-", "-", fmt.Sprint(r.Rounds()), j.Says(o.plan.Limit),
		}
		switch {
		case r.Rounds() > 0 && r.Exact:
			line[6], line[7] = fmt.Sprintf("%.3f", j.Change), "exact"
		case r.Rounds() > 0:
			line[6], line[7] = fmt.Sprintf("%.3f", j.Change), bound(j.Lower)+"-"+bound(j.Upper)
			line[8] = fmt.Sprintf("%.1f %%", 100*(j.Noise-1))
		}
		lines = append(lines, line)
		if r.Err != nil && j.Verdict != gate.Missing {
			notes = append(notes, fmt.Sprintf("%v: %v", r.Cell, r.Err))
		}
		if r.Once != nil {
			notes = append(notes, fmt.Sprintf("%v: failed once, and not when it was repeated: %v", r.Cell, r.Once))
		}
	}
	table.Align(b, lines, func(i int) bool { return i == 2 || i >= 4 && i <= 9 })
	b.WriteString("\n")
	for _, note := range notes {
		b.WriteString(note + "\n")
	}
}

func value(v float64) string {
	if math.IsNaN(v) {
		return "-"
	}
	return table.Value(&v)
}

// bound formats a bound of a ratio. It is ? if there are too few rounds for any.
func bound(bound float64) string {
	if bound == 0 || math.IsInf(bound, 1) {
		return "?"
	}
	return fmt.Sprintf("%.3f", bound)
}

func inPercent(part float64) string { return fmt.Sprintf("%.3g %%", 100*part) }

// counts describes how many cells are ok, slower and undecided, with the reasons, and how many could not be measured.
func counts(rows []*gate.Row) string {
	of := make(map[gate.Verdict]int)
	for _, r := range rows {
		of[r.Judgement.Verdict]++
	}
	named := func(v gate.Verdict, name string) []string {
		if of[v] == 0 {
			return nil
		}
		return []string{fmt.Sprintf("%d %s", of[v], name)}
	}
	doubtful, _ := gate.Doubtful(rows)
	undecided := fmt.Sprintf("%d undecided", len(doubtful))
	if doubtful != nil {
		undecided += " (" + strings.Join(slices.Concat(named(gate.Noisy, "too noisy or with too few rounds"),
			named(gate.Near, "too near to the limit"), named(gate.Unsound, "unlike itself")), ", ") + ")"
	}
	return table.Plural(len(rows), "cell") + ": " + strings.Join(slices.Concat(
		[]string{fmt.Sprintf("%d ok", of[gate.OK]), fmt.Sprintf("%d slower", of[gate.Slower]), undecided},
		named(gate.Missing, "new"), named(gate.OldFailed, "failed before"), named(gate.NewFailed, "failed now")), ", ")
}

// verdict returns the error of a gate that fails.
func (o *options) verdict(rows []*gate.Row) error {
	var slower, failed []string
	for _, r := range gate.Failed(rows) {
		if r.Judgement.Verdict == gate.Slower {
			slower = append(slower, fmt.Sprintf("%v (ratio %.2f)", r.Cell, r.Judgement.Change))
		} else {
			failed = append(failed, r.Cell.String())
		}
	}
	if !slices.ContainsFunc(rows, func(r *gate.Row) bool { return r.Judgement.Verdict != gate.Missing }) {
		return fmt.Errorf("bench: gate: %s is too old: it has none of these cells, as in %v: %w", o.against, rows[0].Cell, rows[0].Err)
	}
	var texts []string
	if slower != nil {
		texts = append(texts, fmt.Sprintf("slower than %s by more than %s: %s", o.against, inPercent(o.plan.Limit), strings.Join(slower, ", ")))
	}
	if failed != nil {
		texts = append(texts, "failed: "+strings.Join(failed, ", "))
	}
	if doubtful, measured := gate.Doubtful(rows); 3*len(doubtful) > measured {
		texts = append(texts, fmt.Sprintf("nothing can be said: %d of %s undecided; more -minutes than %g and -rounds than %d, or a quieter machine, would help",
			len(doubtful), table.Plural(measured, "measured cell"), o.plan.Time.Minutes(), o.plan.Rounds))
	}
	if texts == nil {
		return nil
	}
	return errors.New("bench: gate: " + strings.Join(texts, "; "))
}
