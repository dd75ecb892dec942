package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/onesided/rma/bench/internal/cli"
	"github.com/onesided/rma/bench/internal/device"
	"github.com/onesided/rma/bench/internal/experiments/schemes"
	"github.com/onesided/rma/bench/internal/plan"
	"github.com/onesided/rma/bench/internal/runner"
	"github.com/onesided/rma/verbs/sim"
)

// options are the options of bench without a command, and of bench schemes.
type options struct {
	runner.Options
	plan.Selection
	format  string
	list    bool
	peers   bool
	schemes bool
	rounds  int
}

// parse reads the command line. It writes the help, if requested, to usage.
func parse(args []string, usage io.Writer) (*options, error) {
	o := new(options)
	rounds, timeout, deviceName := 3, runner.UsualTimeout, device.Default()
	if o.schemes = len(args) > 0 && args[0] == cli.SchemesCommand; o.schemes {
		// The ranks of a launcher measure all patterns in one job.
		args, rounds, timeout, deviceName = args[1:], 21, 10*time.Minute, device.TCP
	}
	flags := runner.NewFlags(flag.NewFlagSet("bench", flag.ContinueOnError), &o.Options, &o.Selection, deviceName, timeout)
	flags.StringVar(&o.format, "format", "text", "text, or json: one object a line")
	flags.BoolVar(&o.list, "list", false, "list the cases and the switches, and end")
	flags.BoolVar(&o.peers, "peers", false, "compare with Open MPI and MPICH, as far as they are installed")
	flags.IntVar(&o.rounds, "rounds", rounds, "with -peers: rounds, in each of which all libraries measure a case before the next case; with schemes: rounds, in each of which every scheme has a loop; ratios are taken within a round, and their median counts")
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		writeUsage(usage, flags.FlagSet, o.schemes)
		return nil, err
	case err != nil:
		return nil, cli.Usagef("%v; -h lists the flags", err)
	}
	if err := flags.ReadSwitches(); err != nil {
		return nil, err
	}
	named := flags.Args()
	if o.schemes && len(named) == 0 {
		if o.Sizes != nil {
			return nil, cli.Usagef("-size is for named cases; those of schemes without names have their own")
		}
		named = schemes.Patterns()
	}
	if err := flags.ReadCases(named); err != nil {
		return nil, err
	}
	given := flags.Given()
	if o.schemes {
		if o.Card != nil && !given["rounds"] {
			o.rounds = schemes.SimulatedRounds
		}
		if err := o.checkSchemes(given); err != nil {
			return nil, err
		}
		schemes.Prepare(&o.Options, o.rounds)
	}
	if o.peers {
		o.Refuses = func(string) error {
			return cli.Usagef("-peers starts ranks itself: run it without a launcher")
		}
	}
	return o, o.checkAll(given)
}

// writeUsage writes the help.
func writeUsage(usage io.Writer, flags *flag.FlagSet, comparing bool) {
	fmt.Fprintln(usage, "usage: go run ./bench [flags] [case[:size,…] …]")
	fmt.Fprintln(usage, "       go run ./bench schemes [flags] [case[:size,…] …]")
	fmt.Fprintln(usage, "       go run ./bench switches [flags] [switch[=value] …]")
	fmt.Fprintln(usage, "       go run ./bench kernels [flags] [kernel …]")
	fmt.Fprintln(usage, "       go run ./bench paper [flags] [figure …]")
	fmt.Fprintln(usage, "       go run ./bench scale [flags] [workload …]")
	fmt.Fprintln(usage, "       go run ./bench report -o DIR [flags] [case[:size,…] …]")
	fmt.Fprintln(usage, "       go run ./bench gate -against COMMIT [flags]")
	fmt.Fprintln(usage, "Try: go run ./bench put_flush_lat:8")
	fmt.Fprintln(usage, "Measures one-sided operations; no case: all of them. -list lists the cases, and the")
	fmt.Fprintln(usage, "default sizes of each.")
	fmt.Fprintln(usage, "schemes compares the schemes of arranging the operations of an epoch, over TCP unless -device says otherwise, and the")
	fmt.Fprintln(usage, "adaptive mode that chooses among them, by cases; no case: these.")
	for some := range slices.Chunk(schemes.Patterns(), 5) {
		fmt.Fprintln(usage, "  "+strings.Join(some, " "))
	}
	fmt.Fprintln(usage, "switches compares each switch's default with another setting: see bench switches -h.")
	fmt.Fprintln(usage, "kernels runs kernels of the examples alternating with their MPI versions: see bench kernels -h.")
	fmt.Fprintln(usage, "paper reproduces figures of papers in virtual time: see bench paper -h.")
	fmt.Fprintln(usage, "scale shows how time and memory grow with the number of ranks: see bench scale -h.")
	fmt.Fprintln(usage, "report draws its measurements and writes a page: see bench report -h.")
	fmt.Fprintln(usage, "gate fails if cells are slower than they were at an earlier commit: see bench gate -h.")
	defaults := "The defaults without schemes (for those with it see bench schemes -h):"
	if comparing {
		defaults = "The defaults with schemes:"
	}
	fmt.Fprintln(usage, defaults)
	flags.SetOutput(usage)
	flags.PrintDefaults()
	fmt.Fprint(usage, cli.ExitStatuses+"  As a rank of a launcher it ends with 3 if it failed because another rank did.\n")
}

// checkSchemes rejects options that a run of schemes cannot have.
func (o *options) checkSchemes(given map[string]bool) error {
	for _, name := range []string{"peers", "repeat", "allocs", "percentiles", "trace"} {
		if given[name] {
			return cli.Usagef("-%s is for runs without schemes", name)
		}
	}
	switch {
	case !o.Linked():
		return cli.Usagef("-device %s: schemes are of what goes over a network or is simulated; on mapped memory nothing is deferred", o.Device)
	case o.Card != nil && o.Card.Name == sim.Ideal().Name:
		return cli.Usagef("-device %s: schemes are compared by their time, and there nothing takes any", o.Device)
	case o.Settings.Arranges != "":
		return cli.Usagef("-set %s: schemes sets that switch itself", o.Settings.Arranges)
	}
	for _, s := range o.Cases {
		if !s.Case.HasEpochs() {
			return cli.Usagef("%s is not a case of schemes: it has no epochs to arrange, or times them one by one", s.Case.Name)
		}
	}
	return nil
}

// checkAll returns the error of the first check that fails. If a command line has several faults, the order of the
// checks decides which of them is reported.
func (o *options) checkAll(given map[string]bool) error {
	for _, check := range []func(given map[string]bool) error{
		func(given map[string]bool) error { return o.CheckLoops(given, o.Ranks) },
		o.checkRounds,
		func(map[string]bool) error { return o.CheckTimeout() },
		o.checkFormat,
		func(map[string]bool) error { return o.CheckSettings() },
		o.checkPeers,
		o.CheckDevice,
		o.checkPeersAlone,
	} {
		if err := check(given); err != nil {
			return err
		}
	}
	return nil
}

func (o *options) checkRounds(map[string]bool) error {
	switch {
	case o.peers && o.Shorten > 1:
		return cli.Usagef("-shorten is for runs without -peers, whose programs have loops of a fixed length")
	case o.rounds < 1:
		return cli.Usagef("-rounds %d: at least 1", o.rounds)
	}
	return nil
}

func (o *options) checkFormat(given map[string]bool) error {
	switch {
	case o.format != "text" && o.format != "json":
		return cli.Usagef("-format %q: allowed are text and json", o.format)
	case given["rounds"] && !o.peers && !o.schemes:
		return cli.Usagef("-rounds is for -peers and schemes; -repeat is the number of loops")
	}
	return nil
}

// checkPeers rejects devices that the peers do not have.
func (o *options) checkPeers(map[string]bool) error {
	switch {
	case o.peers && o.Card != nil:
		return cli.Usagef("-peers is for real devices: no peer runs in virtual time")
	case o.peers && o.Device == device.IBV:
		return cli.Usagef("-peers is for -device %s, %s and %s: compare -device %s with perftest on the same card, as verbs/ibv/softroce does", device.Local, device.Shm, device.TCP, device.IBV)
	}
	return nil
}

// checkPeersAlone rejects flags that a run of -peers cannot have.
func (o *options) checkPeersAlone(map[string]bool) error {
	switch {
	case o.Trace != "" && o.peers:
		return cli.Usagef("-trace is for runs without -peers, which runs many jobs")
	case o.Allocs && (o.peers || o.format != "json"):
		return cli.Usagef("-allocs is for -format json without -peers")
	case o.peers && o.Percentiles:
		return cli.Usagef("-percentiles is for runs without -peers, whose programs print no distribution")
	case o.peers && o.Profile != "":
		return cli.Usagef("-cpuprofile is for runs without -peers, which runs many jobs")
	}
	return nil
}
