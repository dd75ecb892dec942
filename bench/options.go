package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/onesided/rma/bench/internal/cases"
	"github.com/onesided/rma/bench/internal/cli"
	"github.com/onesided/rma/bench/internal/device"
	"github.com/onesided/rma/bench/internal/machine"
	"github.com/onesided/rma/bench/internal/plan"
	"github.com/onesided/rma/bench/internal/toggles"
	"github.com/onesided/rma/verbs/sim"
)

// Options say how the cells of a job are measured.
type options struct {
	device string
	// deviceGiven is set if device is not the default.
	deviceGiven bool
	// card is the profile of a simulated device, or nil. seed is the simulator's.
	card *sim.Profile
	seed uint64
	// rails is the number of cards of a simulated rank.
	rails int
	// trace is the file for the events of simulated cards or of ranks over a network, or "".
	trace  string
	repeat int
	// shorten divides the iterations of loops and the times of cases. 0 and 1 change nothing.
	shorten int
	timeout time.Duration
	profile string
	allocs  bool
	// percentiles is set if percentiles of latencies are requested.
	percentiles bool
	settings    toggles.Settings

	// measure measures cells on a rank, in place of repeat loops of each. It is nil for those. Ranks that are processes
	// have it by their command line: words are its first, and arguments take the place of -repeat.
	measure          func(ctx context.Context, s *stage, cells []cases.Cell) error
	words, arguments []string
	// refuses returns an error if ranks of a launcher that use a device cannot measure. It may be nil.
	refuses func(device string) error
}

// machine returns what o's measurements depend on.
func (o *options) machine() fmt.Stringer {
	if o.card != nil {
		return device.Simulation{Card: o.card, Seed: o.seed}
	}
	return machine.This()
}

// linked reports whether ranks reach each other over links of a network, real or simulated.
func (o *options) linked() bool {
	return o.device == device.TCP || o.device == device.IBV || o.card != nil
}

// check rejects values that no run can have. given has the names of the flags on the command line. ranks is 0 if -n is
// not among them.
func (o *options) check(given map[string]bool, ranks int) error {
	if err := o.checkLoops(given, ranks); err != nil {
		return err
	}
	if err := o.checkTimeout(); err != nil {
		return err
	}
	if err := o.checkSettings(); err != nil {
		return err
	}
	return o.checkDevice(given)
}

// checkLoops rejects a device that does not exist, and numbers that no run can have.
func (o *options) checkLoops(given map[string]bool, ranks int) error {
	switch {
	case given["n"] && (ranks < 1 || ranks > device.MaxRanks):
		return cli.Usagef("-n %d: allowed are 1 to %d ranks", ranks, device.MaxRanks)
	case o.card == nil && !slices.Contains(device.Names, o.device):
		return cli.Usagef("-device %q: allowed are %s", o.device, strings.Join(device.Names, ", "))
	case o.repeat < 1:
		return cli.Usagef("-repeat %d: at least 1", o.repeat)
	case given["shorten"] && o.shorten < 1:
		return cli.Usagef("-shorten %d: at least 1", o.shorten)
	}
	return nil
}

// checkTimeout rejects a time limit that no job can keep.
func (o *options) checkTimeout() error {
	if o.timeout <= 0 {
		return cli.Usagef("-timeout %v: more than 0", o.timeout)
	}
	return nil
}

// checkSettings rejects switches that the device does not have.
func (o *options) checkSettings() error {
	switch {
	case o.settings.NeedsTCP != "" && o.device != device.TCP:
		return cli.Usagef("-set %s is of what goes over TCP: say -device %s too", o.settings.NeedsTCP, device.TCP)
	case o.settings.NeedsSharedMemory != "" && o.device != device.Shm:
		return cli.Usagef("-set %s is of memory that processes share: say -device %s", o.settings.NeedsSharedMemory, device.Shm)
	case o.settings.NeedsLinks != "" && !o.linked():
		return cli.Usagef("-set %s is of what goes over links: say -device %s, %s or %sPROFILE too", o.settings.NeedsLinks, device.TCP, device.IBV, device.Sim)
	}
	return nil
}

// checkDevice rejects flags that the device does not have.
func (o *options) checkDevice(given map[string]bool) error {
	switch {
	case given["seed"] && o.card == nil:
		return cli.Usagef("-seed is for -device %sPROFILE", device.Sim)
	case given["rails"] && o.card == nil:
		return cli.Usagef("-rails is for -device %sPROFILE; real ranks have as many as RMA_ADDRESS lists addresses, or RMA_IBV_DEVICE cards, with commas between them", device.Sim)
	case o.rails < 1 || o.rails > maxRails:
		return cli.Usagef("-rails %d: allowed are 1 to %d", o.rails, maxRails)
	case o.trace != "" && !o.linked():
		return cli.Usagef("-trace is for -device %s, %s and %sPROFILE: loads and stores of mapped memory are not traced", device.TCP, device.IBV, device.Sim)
	}
	return nil
}

// maxRails is the greatest number of cards of a rank.
const maxRails = 8

// jobFlags are the flags of options and of a request. Their values are complete after readCases.
type jobFlags struct {
	*flag.FlagSet
	options *options
	request *plan.Selection
	// device is the default.
	device string

	sizes    string
	switches []string
}

// newJobFlags adds the flags of o and r to a set of flags.
func newJobFlags(flags *flag.FlagSet, o *options, r *plan.Selection, deviceName string, timeout time.Duration) *jobFlags {
	f := &jobFlags{FlagSet: flags, options: o, request: r, device: deviceName}
	flags.SetOutput(io.Discard) // the caller prints errors
	flags.IntVar(&r.Ranks, "n", 0, "number of ranks (default 2; of cases whose size it is: 4, 16 and 64)")
	flags.StringVar(&o.device, "device", "", "local: ranks are goroutines; shm: processes that share memory; tcp: processes over TCP on loopback, and -peers over TCP too; ibv: processes over an RDMA card, in a program that was built with -tags ibverbs; sim:PROFILE: in virtual time, on the simulated cards of "+strings.Join(sim.Profiles(), ", ")+" (default "+deviceName+"; "+device.Variable+" counts only where a launcher starts the ranks)")
	flags.Uint64Var(&o.seed, "seed", 1, "with -device sim:PROFILE: the seed of the order of simultaneous events")
	flags.IntVar(&o.rails, "rails", 1, "with -device sim:PROFILE: cards of each rank, all of which long transfers use")
	flags.StringVar(&o.trace, "trace", "", "with -device tcp, ibv or sim:PROFILE: write a trace of the cards and the loops to this `file`, for ui.perfetto.dev or chrome://tracing")
	flags.StringVar(&f.sizes, "size", "", "sizes of the cases that have several, as in 8,1024")
	flags.IntVar(&o.repeat, "repeat", 5, "timed loops of a cell, of which the best counts; of -device sim:PROFILE 2 unless given")
	flags.IntVar(&o.shorten, "shorten", 1, "divide the iterations of each loop, and the times for which cases and schemes run, by this number: for a trial run, whose values mean little")
	flags.Func("set", "set a switch, by `switch=value`; may be repeated (-list lists the switches)", func(text string) error {
		f.switches = append(f.switches, text)
		return nil
	})
	flags.DurationVar(&o.timeout, "timeout", timeout, "the longest that one job may take")
	flags.StringVar(&o.profile, "cpuprofile", "", "write rank 0's CPU profile to this `file`")
	flags.BoolVar(&o.allocs, "allocs", false, "count the heap objects that rank 0's process allocates in the timed loops of a cell and the barriers around them, except in cases that time otherwise (with -format json: allocs)")
	flags.BoolVar(&o.percentiles, "percentiles", false, "print the distribution of a latency, too, measured in a separate loop: lines case:p50, p90, p99, p99.9 and max; iterations shorter than 20 readings of the clock are timed in batches, of which the means count")
	return f
}

// given returns the names of the flags on the command line.
func (f *jobFlags) given() map[string]bool {
	given := make(map[string]bool)
	f.Visit(func(f *flag.Flag) { given[f.Name] = true })
	return given
}

// readSwitches sets the switches and the sizes.
func (f *jobFlags) readSwitches() error {
	for _, text := range f.switches {
		if err := f.options.settings.Add(text); err != nil {
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

// readCases sets the cases to those that are named, and completes the device.
func (f *jobFlags) readCases(named []string) error {
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
	if o.deviceGiven = o.device != ""; !o.deviceGiven {
		o.device = f.device
	}
	if !strings.HasPrefix(o.device, device.Sim) {
		return nil
	}
	card, err := device.Card(o.device)
	if err != nil {
		return err
	}
	o.card = &card
	if !f.given()["repeat"] {
		o.repeat = device.SimulatedLoops
	}
	return nil
}

// parseJob reads a command line that has only the flags and cases of a job.
func parseJob(args []string) (*options, *plan.Selection, error) {
	o, r := new(options), new(plan.Selection)
	f := newJobFlags(flag.NewFlagSet("bench", flag.ContinueOnError), o, r, device.Default(), usualTimeout)
	if err := f.Parse(args); err != nil {
		return nil, nil, cli.Usagef("%v; -h tells the flags", err)
	}
	if err := f.readSwitches(); err != nil {
		return nil, nil, err
	}
	if err := f.readCases(f.Args()); err != nil {
		return nil, nil, err
	}
	return o, r, o.check(f.given(), r.Ranks)
}

// usualTimeout is the longest that a job may take unless a flag says otherwise.
const usualTimeout = 2 * time.Minute
