package runner

import (
	"flag"
	"io"
	"strings"
	"time"

	"github.com/onesided/rma/bench/internal/cli"
	"github.com/onesided/rma/bench/internal/device"
	"github.com/onesided/rma/bench/internal/plan"
	"github.com/onesided/rma/verbs/sim"
)

// Flags are the flags of Options and of a Selection. Their values are complete after ReadCases.
type Flags struct {
	*flag.FlagSet
	options *Options
	request *plan.Selection
	// device is the default.
	device string

	sizes    string
	switches []string
}

// Given returns the names of the flags on the command line.
func (f *Flags) Given() map[string]bool {
	given := make(map[string]bool)
	f.Visit(func(f *flag.Flag) { given[f.Name] = true })
	return given
}

// ReadSwitches sets the switches and the sizes.
func (f *Flags) ReadSwitches() error {
	for _, text := range f.switches {
		if err := f.options.Settings.Add(text); err != nil {
			return err
		}
	}
	if f.sizes == "" {
		return nil
	}
	var err error
	f.request.Sizes, err = plan.ParseSizes(f.sizes)
	return err
}

// ReadCases sets the cases to those that are named, and completes the device.
func (f *Flags) ReadCases(named []string) error {
	o, r := f.options, f.request
	var err error
	if r.Cases, err = plan.Parse(named); err != nil {
		return err
	}
	for _, c := range r.Cases {
		if r.Sizes != nil && c.Sizes != nil {
			return cli.Usagef("-size %s beside %s: allowed are -size for cases without sizes of their own, or sizes behind each case, as %s:8,1024", f.sizes, c.String(), c.Case.Name)
		}
	}
	if o.DeviceGiven = o.Device != ""; !o.DeviceGiven {
		o.Device = f.device
	}
	if !strings.HasPrefix(o.Device, device.Sim) {
		return nil
	}
	card, err := device.Card(o.Device)
	if err != nil {
		return err
	}
	o.Card = &card
	if !f.Given()["repeat"] {
		o.Repeat = device.SimulatedLoops
	}
	return nil
}

// NewFlags adds the flags of o and r to a set of flags.
func NewFlags(flags *flag.FlagSet, o *Options, r *plan.Selection, deviceName string, timeout time.Duration) *Flags {
	f := &Flags{FlagSet: flags, options: o, request: r, device: deviceName}
	flags.SetOutput(io.Discard) // the caller prints errors
	flags.IntVar(&r.Ranks, "n", 0, "number of ranks (default 2; of cases whose size it is: 4, 16 and 64)")
	flags.StringVar(&o.Device, "device", "", "local: ranks are goroutines; shm: processes that share memory; tcp: processes over TCP on loopback, and -peers over TCP too; ibv: processes over an RDMA card, in a program that was built with -tags ibverbs; sim:PROFILE: in virtual time, on the simulated cards of "+strings.Join(sim.Profiles(), ", ")+" (default "+deviceName+"; "+device.Variable+" counts only where a launcher starts the ranks)")
	flags.Uint64Var(&o.Seed, "seed", 1, "with -device sim:PROFILE: the seed of the order of simultaneous events")
	flags.IntVar(&o.Rails, "rails", 1, "with -device sim:PROFILE: cards of each rank, all of which long transfers use")
	flags.StringVar(&o.Trace, "trace", "", "with -device tcp, ibv or sim:PROFILE: write a trace of the cards and the loops to this `file`, for ui.perfetto.dev or chrome://tracing")
	flags.StringVar(&f.sizes, "size", "", "sizes of the cases that have several, as in 8,1024")
	flags.IntVar(&o.Repeat, "repeat", 5, "timed loops of a cell, of which the best counts; of -device sim:PROFILE 2 unless given")
	flags.IntVar(&o.Shorten, "shorten", 1, "divide the iterations of each loop, and the times for which cases and schemes run, by this number: for a trial run, whose values mean little")
	flags.Func("set", "set a switch, by `switch=value`; may be repeated (-list lists the switches)", func(text string) error {
		f.switches = append(f.switches, text)
		return nil
	})
	flags.DurationVar(&o.Timeout, "timeout", timeout, "the longest that one job may take")
	flags.StringVar(&o.Profile, "cpuprofile", "", "write rank 0's CPU profile to this `file`")
	flags.BoolVar(&o.Allocs, "allocs", false, "count the heap objects that rank 0's process allocates in the timed loops of a cell and the barriers around them, except in cases that time otherwise (with -format json: allocs)")
	flags.BoolVar(&o.Percentiles, "percentiles", false, "print the distribution of a latency, too, measured in a separate loop: lines case:p50, p90, p99, p99.9 and max; iterations shorter than 20 readings of the clock are timed in batches, of which the means count")
	return f
}

// Parse reads a command line that has only the flags and cases of a job.
func Parse(args []string) (*Options, *plan.Selection, error) {
	o, r := new(Options), new(plan.Selection)
	f := NewFlags(flag.NewFlagSet("bench", flag.ContinueOnError), o, r, device.Default(), UsualTimeout)
	if err := f.Parse(args); err != nil {
		return nil, nil, cli.Usagef("%v; -h lists the flags", err)
	}
	if err := f.ReadSwitches(); err != nil {
		return nil, nil, err
	}
	if err := f.ReadCases(f.Args()); err != nil {
		return nil, nil, err
	}
	return o, r, o.Check(f.Given(), r.Ranks)
}

// UsualTimeout is the longest that a job may take unless a flag says otherwise.
const UsualTimeout = 2 * time.Minute
