package report

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/onesided/rma/bench/internal/cases"
	"github.com/onesided/rma/bench/internal/cli"
	"github.com/onesided/rma/bench/internal/device"
	"github.com/onesided/rma/bench/internal/experiments/kernels"
	"github.com/onesided/rma/bench/internal/plan"
	"github.com/onesided/rma/bench/internal/runner"
	"github.com/onesided/rma/bench/internal/toggles"
)

// options are the command line after that word.
type options struct {
	dir     string
	devices []*runner.Options // the options for each device
	request plan.Selection
	peers   bool
	prk     string // "" or a directory
	rounds  int
	dense   bool
	paper   bool
	// whole is set if no cases are named: then schemes and numbers of ranks are compared, too.
	whole bool
}

// usualCases are measured if none are named.
var usualCases = []string{"put_flush_lat", "get_flush_lat", "fop_lat", "cas_lat", "fence_put_lat", "msg_lat", "put_bw", "get_bw", "msg_bw"}

// loops is the number of loops of a cell that are timed in a round. The best of them counts.
const loops = 2

// parse reads the command line. It writes the help, if requested, to usage.
func parse(args []string, usage io.Writer) (*options, error) {
	o := new(options)
	var devices string
	var settings toggles.Settings
	var switches []string
	var timeout time.Duration
	flags := flag.NewFlagSet("bench report", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&o.dir, "o", "", "the `directory` of the report; it is made if it does not exist")
	flags.StringVar(&devices, "devices", device.Default()+","+device.TCP, "the devices, separated by commas: "+strings.Join(realDevices, ", "))
	flags.Func("set", "set a switch, by `switch=value`; may be repeated (bench -list lists the switches)", func(text string) error {
		switches = append(switches, text)
		return nil
	})
	flags.BoolVar(&o.peers, "peers", false, "measure Open MPI and MPICH, too, as far as they are installed")
	flags.StringVar(&o.prk, "prk", "", "with -peers: "+kernels.PRKUsage)
	flags.IntVar(&o.rounds, "rounds", 3, "rounds, in each of which all libraries measure a case before the next; the report has their median, lowest and highest")
	flags.BoolVar(&o.dense, "dense", false, "sizes 5 % apart, not fourfold")
	flags.BoolVar(&o.paper, "paper", false, "draw the papers' figures, too, which takes about three minutes")
	flags.DurationVar(&timeout, "timeout", 2*time.Minute, "the longest that one job may take")
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintln(usage, "usage: go run ./bench report -o DIR [flags] [case[:size,…] …]")
		fmt.Fprintln(usage, "Measures cases and writes the results into DIR: report.html, which needs no other file, its")
		fmt.Fprintln(usage, "plots as .svg, and results.txt in the format of Go's benchmarks, for benchstat.")
		fmt.Fprintln(usage, "No case: these, and how the schemes and the number of ranks change them; with -peers also what bench kernels measures.")
		fmt.Fprintln(usage, "  "+strings.Join(usualCases, " "))
		flags.SetOutput(usage)
		flags.PrintDefaults()
		fmt.Fprint(usage, cli.ExitStatuses)
		return nil, err
	case err != nil:
		return nil, cli.Usagef("%v; -h lists the flags", err)
	case o.dir == "":
		return nil, cli.Usagef("report needs a place: -o DIR")
	case o.rounds < 1:
		return nil, cli.Usagef("-rounds %d: at least 1", o.rounds)
	case o.prk != "" && !o.peers:
		return nil, cli.Usagef("-prk is for -peers")
	}
	for _, text := range switches {
		if err := settings.Add(text); err != nil {
			return nil, err
		}
	}
	if o.prk, err = kernels.CheckPRK(o.prk); err != nil {
		return nil, err
	}
	if o.request.Cases, err = o.chosen(flags.Args()); err != nil {
		return nil, err
	}
	for name := range strings.SplitSeq(devices, ",") {
		if !slices.Contains(realDevices, name) {
			return nil, cli.Usagef("-devices %q: unknown device %q; allowed are %s", devices, name, strings.Join(realDevices, ", "))
		}
		if slices.ContainsFunc(o.devices, func(d *runner.Options) bool { return d.Device == name }) {
			return nil, cli.Usagef("-devices %q: %s is given twice", devices, name)
		}
		one := &runner.Options{
			Device: name, DeviceGiven: true, Repeat: loops, Rails: 1,
			Timeout: timeout, Settings: settings, Percentiles: true,
		}
		if err := one.Check(nil, 0); err != nil {
			return nil, err
		}
		o.devices = append(o.devices, one)
	}
	return o, nil
}

// realDevices are the real devices.
var realDevices = device.Names[:4]

// chosen returns the cases that are named, or the usual ones, with their sizes in a report.
func (o *options) chosen(named []string) ([]plan.Named, error) {
	if o.whole = len(named) == 0; o.whole {
		named = usualCases
	}
	selected, err := plan.Parse(named)
	for i, s := range selected {
		if s.Sizes == nil && s.Case.Limit != 0 {
			selected[i].Sizes = o.sizes(s.Case)
		}
	}
	return selected, err
}

// sizes returns the sizes of a case, from 8 bytes to 1 MiB.
func (o *options) sizes(c *cases.Case) []int {
	const least, most = 8, 1 << 20
	factor := 4.0
	if o.dense {
		factor = 1.05
	}
	var sizes []int
	for x := float64(least); x < most*0.999; x *= factor {
		sizes = append(sizes, int(x)/c.Each*c.Each)
	}
	sizes = append(slices.Compact(sizes), most)
	return slices.DeleteFunc(sizes, func(size int) bool { return size > c.Limit })
}
