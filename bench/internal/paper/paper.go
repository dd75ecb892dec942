package paper

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/onesided/rma/bench/internal/cli"
	"github.com/onesided/rma/bench/internal/device"
	"github.com/onesided/rma/bench/internal/table"
)

// Options are the command line after that word.
type Options struct {
	figures []*Figure
	part    string
	svg     string
	curves  bool
	format  string
	Seed    uint64
	Timeout time.Duration
}

// parse reads the command line. It writes the help, if requested, to usage.
func parse(args []string, usage io.Writer) (*Options, error) {
	o := new(Options)
	flags := flag.NewFlagSet("bench paper", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&o.part, "part", "", "only figures of this `part`, that is of one paper: "+strings.Join(parts(), ", "))
	flags.StringVar(&o.svg, "svg", "", "draw each figure into this `directory`")
	flags.BoolVar(&o.curves, "curves", false, "print the values of the curves, too")
	flags.StringVar(&o.format, "format", "text", "text, or json: one object a line, with the curves")
	flags.Uint64Var(&o.Seed, "seed", 1, "the seed of the order of simultaneous events")
	flags.DurationVar(&o.Timeout, "timeout", 2*time.Minute, "the longest that one curve may take, in real time")
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintln(usage, "usage: go run ./bench paper [flags] [figure …]")
		fmt.Fprintln(usage, "Reproduces the figures of the papers that this library follows: the library's own code,")
		fmt.Fprintln(usage, "with a mechanism on and off, in virtual time on the paper's hardware, and traces of buffers")
		fmt.Fprintln(usage, "on that of one. The figures; no figure: all of them.")
		var lines [][]string
		for _, f := range Figures() {
			lines = append(lines, []string{"  " + f.Name(), f.profile, f.title})
		}
		var list strings.Builder
		table.Align(&list, lines, func(int) bool { return false })
		fmt.Fprint(usage, list.String())
		flags.SetOutput(usage)
		flags.PrintDefaults()
		fmt.Fprint(usage, "\nexit status: 0; 1 if a figure is off, or something failed or ended it early; 2 for wrong usage\n")
		return nil, err
	case err != nil:
		return nil, cli.Usagef("%v; -h lists the flags", err)
	case o.format != "text" && o.format != "json":
		return nil, cli.Usagef("-format %q: allowed are text and json", o.format)
	case o.Timeout <= 0:
		return nil, cli.Usagef("-timeout %v: more than 0", o.Timeout)
	case o.curves && o.format == "json":
		return nil, cli.Usagef("-curves is for -format text: json has them anyway")
	case o.part != "" && !slices.Contains(parts(), o.part):
		return nil, cli.Usagef("-part %q: allowed are %s", o.part, strings.Join(parts(), ", "))
	}
	o.figures, err = o.chosen(flags.Args())
	return o, err
}

// chosen returns the figures that are named, or all, in the order of the papers.
func (o *Options) chosen(named []string) ([]*Figure, error) {
	var all, chosen []*Figure
	var names []string
	for _, f := range Figures() {
		if o.part == "" || f.part == o.part {
			all, names = append(all, f), append(names, f.Name())
		}
	}
	if err := cli.CheckNamed("figure", named, names); err != nil {
		return nil, err
	}
	for _, f := range all {
		if len(named) == 0 || slices.Contains(named, f.Name()) {
			chosen = append(chosen, f)
		}
	}
	return chosen, nil
}

// errOff reports that the library does not do what a paper's figure shows.
var errOff = errors.New("off")

// Run is the run of paper.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	if device.Launched() {
		return cli.Usagef("paper has its ranks in one process: run it without a launcher")
	}
	if o.svg != "" {
		if err := os.MkdirAll(o.svg, 0o777); err != nil {
			return fmt.Errorf("bench: -svg: %w", err)
		}
	}
	show, done := cli.Progress(stderr)
	defer done()
	plots, measuring := o.measure(ctx, show)
	done()
	if len(plots) == 0 {
		return measuring
	}
	write := writeText
	if o.format == "json" {
		write = writeJSON
	}
	// The figures before an error are written, too.
	if err := errors.Join(measuring, write(stdout, plots, o.curves)); err != nil {
		return err
	}
	return offAmong(plots)
}

// measure reproduces and draws the figures. With an error it returns those before it.
func (o *Options) measure(ctx context.Context, show func(string)) (plots []*Plot, err error) {
	for i, f := range o.figures {
		show(fmt.Sprintf("figure %d of %d: %s, %s", i+1, len(o.figures), f.Name(), f.title))
		p, err := f.Reproduce(ctx, o)
		if err != nil {
			return plots, fmt.Errorf("bench: figure %s: %w", f.Name(), err)
		}
		plots = append(plots, p)
		if o.svg != "" {
			if err := os.WriteFile(filepath.Join(o.svg, f.Name()+".svg"), []byte(p.SVG()), 0o666); err != nil {
				return plots, fmt.Errorf("bench: -svg: %w", err)
			}
		}
	}
	return plots, nil
}

// offAmong returns an error if a case of the figures is off.
func offAmong(plots []*Plot) error {
	off, all := 0, 0
	for _, p := range plots {
		for _, v := range p.Verdicts {
			if v.Theirs != "" {
				all++
			}
			if !v.Within {
				off++
			}
		}
	}
	if off > 0 {
		return fmt.Errorf("bench: %d of %s %w", off, table.Plural(all, "case"), errOff)
	}
	return nil
}
