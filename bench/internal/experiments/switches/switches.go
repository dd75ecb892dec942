package switches

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/onesided/rma/bench/internal/cli"
	"github.com/onesided/rma/bench/internal/compare"
	"github.com/onesided/rma/bench/internal/device"
	"github.com/onesided/rma/bench/internal/machine"
	"github.com/onesided/rma/bench/internal/table"
	"github.com/onesided/rma/bench/internal/toggles"
)

// options are the command line after that word.
type options struct {
	comparisons []*comparison
	rounds      int
	repeat      int
	format      string
	timeout     time.Duration
}

// parse reads the command line. It writes the help, if requested, to usage.
func parse(args []string, usage io.Writer) (*options, error) {
	o := new(options)
	flags := flag.NewFlagSet("bench switches", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.IntVar(&o.rounds, "rounds", 5, "rounds, in each of which a case is measured with the switch at its default and at the setting; in virtual time there is one")
	flags.IntVar(&o.repeat, "repeat", 3, "timed loops of a cell in a round, of which the best counts")
	flags.StringVar(&o.format, "format", "text", "text, or json: one object a line")
	flags.DurationVar(&o.timeout, "timeout", 2*time.Minute, "the longest that one job may take")
	err := flags.Parse(args)
	all := switchCases()
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintln(usage, "usage: go run ./bench switches [flags] [switch[=value] …]")
		fmt.Fprintln(usage, "Measures the effect of switches of optimizations: a case of each, with the switch alternately at its default and at")
		fmt.Fprintln(usage, "another setting. No switch: all of them, in some minutes. Without a value these settings are compared with the defaults:")
		for _, e := range all {
			fmt.Fprintf(usage, "  %-20s %s\n", e.set, strings.Join(append(append([]string{"-device", e.device}, e.by...), e.cases...), " "))
		}
		flags.SetOutput(usage)
		flags.PrintDefaults()
		fmt.Fprint(usage, cli.ExitStatuses)
		return nil, err
	case err != nil:
		return nil, cli.Usagef("%v; -h lists the flags", err)
	case o.rounds < 1:
		return nil, cli.Usagef("-rounds %d: at least 1", o.rounds)
	case o.repeat < 1:
		return nil, cli.Usagef("-repeat %d: at least 1", o.repeat)
	case o.timeout <= 0:
		return nil, cli.Usagef("-timeout %v: more than 0", o.timeout)
	case o.format != "text" && o.format != "json":
		return nil, cli.Usagef("-format %q: allowed are text and json", o.format)
	}
	var names []string
	for _, t := range toggles.All() {
		names = append(names, t.Name)
	}
	var named []string
	for _, arg := range flags.Args() {
		name, _, _ := strings.Cut(arg, "=")
		named = append(named, name)
	}
	if err := cli.CheckNamed("switch", named, names); err != nil {
		return nil, err
	}
	for i, e := range all {
		at := slices.Index(named, names[i])
		if named != nil && at < 0 {
			continue
		}
		if at >= 0 && flags.Arg(at) != names[i] {
			e.set = flags.Arg(at)
		}
		s, err := newComparison(e, toggles.All()[i], o)
		if err != nil {
			return nil, err
		}
		o.comparisons = append(o.comparisons, s)
	}
	return o, nil
}

// Run is the run of switches.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	if device.Launched() {
		return cli.Usagef("switches starts ranks itself: run it without a launcher")
	}
	show, done := cli.Progress(stderr)
	measuring := o.measure(ctx, show, stderr)
	done()
	for _, s := range o.comparisons {
		s.judge()
	}
	// The results before an error are written, too.
	return errors.Join(measuring, o.write(stdout, cli.CommandLine(append([]string{cli.SwitchesCommand}, args...))))
}

// roundsOf returns the rounds of a comparison: one in virtual time, where all rounds are the same.
func (o *options) roundsOf(s *comparison) int {
	if s.sides[0].Card != nil {
		return 1
	}
	return o.rounds
}

// measure goes switch by switch: measurements that are compared follow each other directly.
func (o *options) measure(ctx context.Context, show func(string), stderr io.Writer) error {
	rest := cli.NewForecast()
	for _, s := range o.comparisons {
		rest.Add(s.set, float64(o.roundsOf(s)))
	}
	var failed []string
	for i, s := range o.comparisons {
		rounds := o.roundsOf(s)
		for round := range rounds {
			show(fmt.Sprintf("switch %d of %d: %s, round %d of %d%s", i+1, len(o.comparisons), s.set, round+1, rounds, rest.Suffix()))
			began := time.Now()
			if err := s.take(ctx, round, stderr); err != nil {
				return err
			}
			rest.Done(s.set, 1, time.Since(began))
		}
		for _, r := range s.rows {
			if r.WithDefault.Failed || r.WithSetting.Failed {
				failed = append(failed, fmt.Sprintf("%s of %s", r.cell.String(), s.set))
			}
		}
	}
	if failed != nil {
		return fmt.Errorf("bench: switches: failed: %s", strings.Join(failed, "; "))
	}
	return nil
}

// write writes the table, or one object a line.
func (o *options) write(w io.Writer, command string) error {
	if o.format == "json" {
		encoder := json.NewEncoder(w)
		for _, s := range o.comparisons {
			for _, r := range s.rows {
				if err := encoder.Encode(r); err != nil {
					return err
				}
			}
		}
		return nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s\n", command, machine.This())
	fmt.Fprintf(&b, "Medians of %s, each the best of %s, with the switch alternately at its default and at the setting; in virtual time (sim) of one round.\n", table.Plural(o.rounds, "round"), table.Plural(o.repeat, "loop"))
	b.WriteString("ratio: the time at the setting to that at the default within a round, of which the median counts; rounds: the lowest and the highest.\n\n")
	lines := [][]string{{"setting", "default", "device", "case", "size", "unit", "at default", "at setting", "ratio", "rounds"}}
	var notes []string
	for _, s := range o.comparisons {
		for _, r := range s.rows {
			lines = append(lines, []string{
				r.Switch + "=" + r.Setting, r.Default, r.Device, r.Case, fmt.Sprint(r.Size), r.Unit,
				table.Value(r.WithDefault.Median), table.Value(r.WithSetting.Median), table.Ratio(r.Ratio.Median), table.Extremes(r.Ratio),
			})
			notes = compare.AddNote(notes, r.cell.String()+" at the default of "+r.Switch, r.WithDefault, o.rounds)
			notes = compare.AddNote(notes, r.cell.String()+" with "+r.Switch+"="+r.Setting, r.WithSetting, o.rounds)
		}
	}
	table.Align(&b, lines, func(i int) bool { return i == 4 || i >= 6 && i <= 8 })
	for _, note := range notes {
		fmt.Fprintf(&b, "\n%s.", note)
	}
	if notes != nil {
		b.WriteString("\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
