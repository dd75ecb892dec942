package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/onesided/rma/bench/internal/cases"
	"github.com/onesided/rma/bench/internal/cli"
	"github.com/onesided/rma/bench/internal/device"
	"github.com/onesided/rma/bench/internal/gate"
	"github.com/onesided/rma/bench/internal/machine"
	"github.com/onesided/rma/bench/internal/stats"
	"github.com/onesided/rma/bench/internal/table"
)

// A gateCell is a cell of the gate. Loops is its first -repeat. With it a measurement takes about gateSlice, or less
// if a busy machine may make it a hundred times slower.
type gateCell struct {
	device, name string
	size, loops  int
}

// gateSlice is about the time of a measurement.
const gateSlice = 500 * time.Millisecond

// gateCells returns the cells of the gate. Loops with many iterations are easily disturbed. So a latency over TCP has
// a size for which few iterations are enough.
func gateCells() []gateCell {
	const ndr, pcie = device.Sim + "ndr-2024", device.Sim + "pcie-2005"
	return []gateCell{
		{device.Shm, "put_flush_lat", 8, 300},
		{device.Shm, "get_flush_lat", 1024, 100},
		{device.Shm, "pscw_put_lat", 8, 5},
		{device.Shm, "msg_lat", 8, 5},
		{device.Shm, "scatter_rate", 1000, 50},
		{device.Shm, "update_rate", 1000, 30},
		{device.Shm, "put_bw", 65536, 5},
		{device.Shm, "msg_bw", 65536, 1},
		{device.Shm, "barrier_lat", 2, 5},
		{device.Shm, "allreduce_scale", 2, 5},
		{device.Shm, "hashtable_insert_rate", 1000, 15},
		{device.Shm, "hashtable_lookup_rate", 1000, 15},

		{device.TCP, "put_flush_lat", 16384, 10},
		{device.TCP, "acc_flush_lat", 16384, 10},
		{device.TCP, "fence_put_lat", 16384, 10},
		{device.TCP, "msg_lat", 16384, 5},
		{device.TCP, "scatter_rate", 1000, 10},
		{device.TCP, "update_rate", 1000, 20},
		{device.TCP, "put_bw", 65536, 2},
		{device.TCP, "get_bw", 65536, 2},
		{device.TCP, "allreduce_scale", 2, 6},
		{device.TCP, "hashtable_insert_rate", 1000, 6},
		{device.TCP, "hashtable_lookup_rate", 1000, 5},

		{ndr, "put_flush_lat", 8, device.SimulatedLoops},
		{ndr, "scatter_rate", 1000, device.SimulatedLoops},
		{ndr, "put_bw", 65536, device.SimulatedLoops},
		{ndr, "fence_scale", 16, device.SimulatedLoops},
		{ndr, "hashtable_insert_rate", 1000, device.SimulatedLoops},
		{pcie, "pscw_put_lat", 8, device.SimulatedLoops},
		{pcie, "pattern16_bw", 65536, device.SimulatedLoops},
	}
}

// cell returns the cell in the form of package gate.
func (c gateCell) cell() gate.Cell {
	unit := cases.ByName(c.name).Unit
	return gate.Cell{
		Device: c.device, Case: c.name, Size: c.size,
		Unit: unit, MoreIsBetter: stats.MoreIsBetter(unit), Exact: strings.HasPrefix(c.device, device.Sim), Loops: c.loops,
	}
}

const (
	// gateAlarm and gateMiss are the error rates of the gate: of calling a cell slower that is not, and of passing a
	// cell that is.
	gateAlarm = 0.01
	gateMiss  = 0.05
	// gateMinutes are enough to decide most cells on two cores that other programs use, too. Ten leave a third undecided
	// there.
	gateMinutes = 20.0
	// mostGateRounds bounds the computation of a look.
	mostGateRounds = 200
)

// gateOptions are the command line after the word.
type gateOptions struct {
	against string
	plan    gate.Plan
	cells   []gateCell
	verbose bool
}

// draw keeps n of the cells, in their order, if n is less than all.
func (o *gateOptions) draw(n int) {
	if n == 0 || n >= len(o.cells) {
		return
	}
	drawn := rand.New(rand.NewPCG(o.plan.Seed, 0)).Perm(len(o.cells))[:n]
	slices.Sort(drawn)
	var cells []gateCell
	for _, i := range drawn {
		cells = append(cells, o.cells[i])
	}
	o.cells = cells
}

// parseGate reads the command line. It writes the help, if requested, to usage.
func parseGate(args []string, usage io.Writer) (*gateOptions, error) {
	o := &gateOptions{plan: gate.Plan{Limit: 0.05, Slice: gateSlice, Alarm: gateAlarm, Miss: gateMiss, Seed: 1}, cells: gateCells()}
	minutes, some := gateMinutes, 0
	flags := flag.NewFlagSet("bench gate", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&o.against, "against", "", "the earlier `commit`, by any name that git knows")
	flags.IntVar(&o.plan.Rounds, "rounds", 60, "the greatest number of rounds of a cell")
	flags.Float64Var(&minutes, "minutes", minutes, "the longest that the measurements may take together; building comes before. The default decides most cells on a busy machine of two cores")
	flags.Func("limit", "how many `percent` slower a cell may be (default 5)", func(text string) error {
		limit, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(text, "%")), 64)
		o.plan.Limit = limit / 100
		return err
	})
	flags.Func("cells", "measure only the cells that this `regexp` matches; -h lists them", func(text string) error {
		pattern, err := regexp.Compile(text)
		if err != nil {
			return err
		}
		o.cells = slices.DeleteFunc(gateCells(), func(c gateCell) bool { return !pattern.MatchString(c.cell().String()) })
		return nil
	})
	flags.IntVar(&some, "some", 0, "measure `N` cells, drawn by -seed, in a run that is too short to decide all (default all)")
	flags.Uint64Var(&o.plan.Seed, "seed", o.plan.Seed, "the `seed` of the order of measurements and of the cells of -some")
	flags.BoolVar(&o.verbose, "v", false, "print each measurement to the standard error")
	err := flags.Parse(args)
	o.plan.Time = time.Duration(minutes * float64(time.Minute))
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintln(usage, "usage: go run ./bench gate -against COMMIT [flags]")
		fmt.Fprintln(usage, "Fails if a cell is slower than it was at an earlier commit. It builds bench of that commit, in a git worktree of its")
		fmt.Fprintln(usage, "own that it removes, and of this work tree as it is. It measures both in turns, and the earlier one twice for the noise,")
		fmt.Fprintln(usage, "in rounds until each cell is decided. A cell that -rounds or -minutes leave undecided is no failure: the table says")
		fmt.Fprintln(usage, "what slowdown would have been found. If more than a third of the measured cells are undecided, the run fails, because it")
		fmt.Fprintln(usage, "can say nothing. Cells in virtual time (sim) are exact, and are measured once. A measurement that fails is repeated once.")
		fmt.Fprintf(usage, "If no cell is slower by more than the limit, a run calls one slower with a probability of %g %% at most. A cell that is\n", 100*gateAlarm)
		fmt.Fprintf(usage, "slower than that is ok with a probability of %g %% at most. Both hold for a change that multiplies the cost. Cells:\n", 100*gateMiss)
		for _, c := range gateCells() {
			fmt.Fprintln(usage, "  "+c.cell().String())
		}
		flags.SetOutput(usage)
		flags.PrintDefaults()
		fmt.Fprint(usage, "\nexit status: 0; 1 if a cell is slower, too many are undecided, something failed or ended it early; 2 for wrong usage\n")
		return nil, err
	case err != nil:
		return nil, cli.Usagef("%v; -h tells the flags", err)
	case flags.NArg() > 0:
		return nil, cli.Usagef("%s: gate takes flags only; -cells chooses cells", flags.Arg(0))
	case o.against == "":
		return nil, cli.Usagef("gate needs -against COMMIT")
	case some < 0:
		return nil, cli.Usagef("-some %d: allowed are 1 or more, and 0 for all", some)
	case len(o.cells) == 0:
		return nil, cli.Usagef("-cells matches no cell; -h lists them")
	case o.plan.Rounds < 1 || o.plan.Rounds > mostGateRounds:
		return nil, cli.Usagef("-rounds %d: allowed are 1 to %d", o.plan.Rounds, mostGateRounds)
	case !(minutes > 0 && minutes <= 1e5):
		return nil, cli.Usagef("-minutes %g: more than 0", minutes)
	case !(o.plan.Limit > 0 && o.plan.Limit <= 10):
		return nil, cli.Usagef("-limit %g: allowed are percents above 0, up to 1000", 100*o.plan.Limit)
	}
	o.draw(some)
	noisy := len(slices.DeleteFunc(slices.Clone(o.cells), func(c gateCell) bool { return c.cell().Exact }))
	if err := o.plan.Check(noisy); err != nil {
		return nil, cli.Usagef("-rounds %d: %v", o.plan.Rounds, err)
	}
	return o, nil
}

// runGate is the run of gate in the work tree around dir.
func runGate(ctx context.Context, dir string, args []string, stdout, stderr io.Writer) (err error) {
	o, err := parseGate(args, stderr)
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
	say, done := cli.Progress(stderr)
	defer done()
	say("building both programs")
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
		say(fmt.Sprintf("%s; %v of %v", line, time.Since(began).Round(time.Second), o.plan.Time))
	})
	done()
	if err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s\nold: %s\nnew: %s\n", cli.CommandLine(append([]string{cli.Gate}, args...)), machine.This(), here.old(), here.new())
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
func (o *gateOptions) write(b *strings.Builder, rows []*gate.Row) {
	b.WriteString("old, new: medians of the rounds. ratio: new to old in cost, of which more is worse whatever the unit, with its interval.\n")
	fmt.Fprintf(b, "noise: how much the old program differs from itself in the median of the rounds.\n")
	fmt.Fprintf(b, "slower: by more than %s. If no cell is, a run calls one slower with a probability of %g %% at most; a cell that is slower is ok with %g %% at most.\n\n",
		inPercent(o.plan.Limit), 100*gateAlarm, 100*gateMiss)
	lines := [][]string{{"device", "case", "size", "unit", "old", "new", "ratio", "interval", "noise", "rounds", "verdict"}}
	var notes []string
	for _, r := range rows {
		j := r.Judgement
		line := []string{
			r.Device, r.Case, fmt.Sprint(r.Size), r.Unit, gateValue(r.Median(gate.Old)), gateValue(r.Median(gate.New)),
			"-", "-", "-", fmt.Sprint(r.Rounds()), j.Says(o.plan.Limit),
		}
		switch {
		case r.Rounds() > 0 && r.Exact:
			line[6], line[7] = fmt.Sprintf("%.3f", j.Change), "exact"
		case r.Rounds() > 0:
			line[6], line[7] = fmt.Sprintf("%.3f", j.Change), gateBound(j.Lower)+"-"+gateBound(j.Upper)
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

func gateValue(v float64) string {
	if math.IsNaN(v) {
		return "-"
	}
	return table.Value(&v)
}

// gateBound formats a bound of a ratio. It is ? if there are too few rounds for any.
func gateBound(bound float64) string {
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
func (o *gateOptions) verdict(rows []*gate.Row) error {
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
