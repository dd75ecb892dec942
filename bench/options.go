package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/onesided/rma/bench/internal/cli"
	"github.com/onesided/rma/verbs/sim"
)

const (
	deviceLocal = "local" // ranks are goroutines of this process
	deviceShm   = "shm"   // ranks are processes of this machine that share memory
	deviceTCP   = "tcp"   // ranks are processes of this machine that use only sockets
	deviceIBV   = "ibv"   // ranks are processes of this machine that use only an RDMA card
	// deviceSim and the name of a profile are a device on which ranks run in virtual time.
	deviceSim = "sim:"
)

var devices = []string{deviceLocal, deviceShm, deviceTCP, deviceIBV, deviceSim + "PROFILE"}

// options are the command line.
type options struct {
	ranks  int // 0: the number for which each case is made
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
	sizes  []int // nil: each case's own
	repeat int
	// shorten divides the iterations of loops and the times of cases. 0 and 1 change nothing.
	shorten int
	format  string
	list    bool
	peers   bool
	schemes bool
	rounds  int
	timeout time.Duration
	profile string
	allocs  bool
	// percentiles is set if percentiles of latencies are requested.
	percentiles bool
	settings    settings
	cases       []selection
}

// A selection is a case that the command line names.
type selection struct {
	c     *benchCase
	sizes []int // nil: those of -size, or the case's own; not both may be given
}

// parse reads the command line. It writes the help, if requested, to usage.
func parse(args []string, usage io.Writer) (*options, error) {
	o := new(options)
	var sizes string
	var switches []string
	rounds, timeout, device := 3, 2*time.Minute, defaultDevice()
	if o.schemes = len(args) > 0 && args[0] == cli.Schemes; o.schemes {
		// The ranks of a launcher measure all patterns in one job.
		args, rounds, timeout, device = args[1:], 21, 10*time.Minute, deviceTCP
	}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the caller prints errors
	flags.IntVar(&o.ranks, "n", 0, "number of ranks (default 2; of cases whose size it is: 4, 16 and 64)")
	flags.StringVar(&o.device, "device", "", "local: ranks are goroutines; shm: processes that share memory; tcp: processes over TCP on loopback, and -peers over TCP too; ibv: processes over an RDMA card, in a program that was built with -tags ibverbs; sim:PROFILE: in virtual time, on the simulated cards of "+strings.Join(sim.Profiles(), ", ")+" (default "+device+"; "+deviceVariable+" counts only where a launcher starts the ranks)")
	flags.Uint64Var(&o.seed, "seed", 1, "with -device sim:PROFILE: the seed of the order of simultaneous events")
	flags.IntVar(&o.rails, "rails", 1, "with -device sim:PROFILE: cards of each rank, all of which long transfers use")
	flags.StringVar(&o.trace, "trace", "", "with -device tcp, ibv or sim:PROFILE: write a trace of the cards and the loops to this `file`, for ui.perfetto.dev or chrome://tracing")
	flags.StringVar(&sizes, "size", "", "sizes of the cases that have several, as in 8,1024")
	flags.IntVar(&o.repeat, "repeat", 5, "timed loops of a cell, of which the best counts; of -device sim:PROFILE 2 unless given")
	flags.IntVar(&o.shorten, "shorten", 1, "divide the iterations of each loop, and the times for which cases and schemes run, by this number: for a trial run, whose values mean little")
	flags.StringVar(&o.format, "format", "text", "text, or json: one object a line")
	flags.BoolVar(&o.list, "list", false, "list the cases and the switches, and end")
	flags.Func("set", "set a switch, by `switch=value`; may be repeated (-list lists the switches)", func(text string) error {
		switches = append(switches, text)
		return nil
	})
	flags.BoolVar(&o.peers, "peers", false, "compare with Open MPI and MPICH, as far as they are installed")
	flags.IntVar(&o.rounds, "rounds", rounds, "with -peers: rounds, in each of which all libraries measure a case before the next case; with schemes: rounds, in each of which every scheme has a loop; ratios are taken within a round, and their median counts")
	flags.DurationVar(&o.timeout, "timeout", timeout, "the longest that one job may take")
	flags.StringVar(&o.profile, "cpuprofile", "", "write rank 0's CPU profile to this `file`")
	flags.BoolVar(&o.allocs, "allocs", false, "count the heap objects that rank 0's process allocates in the timed loops of a cell and the barriers around them, except in cases that time otherwise (with -format json: allocs)")
	flags.BoolVar(&o.percentiles, "percentiles", false, "print the distribution of a latency, too, measured in a separate loop: lines case:p50, p90, p99, p99.9 and max; iterations shorter than 20 readings of the clock are timed in batches, of which the means count")
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintln(usage, "usage: go run ./bench [flags] [case[:size,…] …]")
		fmt.Fprintln(usage, "       go run ./bench schemes [flags] [case[:size,…] …]")
		fmt.Fprintln(usage, "       go run ./bench switches [flags] [switch[=value] …]")
		fmt.Fprintln(usage, "       go run ./bench kernels [flags] [kernel …]")
		fmt.Fprintln(usage, "       go run ./bench paper [flags] [figure …]")
		fmt.Fprintln(usage, "       go run ./bench scale [flags] [workload …]")
		fmt.Fprintln(usage, "       go run ./bench report -o DIR [flags] [case[:size,…] …]")
		fmt.Fprintln(usage, "       go run ./bench gate -against COMMIT [flags]")
		fmt.Fprintln(usage, "Measures one-sided operations; no case: all of them. -list lists the cases, and the")
		fmt.Fprintln(usage, "default sizes of each.")
		fmt.Fprintln(usage, "schemes compares the schemes of arranging the operations of an epoch, over TCP unless -device says otherwise, and the")
		fmt.Fprintln(usage, "adaptive mode that chooses among them, by cases; no case: these.")
		for some := range slices.Chunk(patterns(), 5) {
			fmt.Fprintln(usage, "  "+strings.Join(some, " "))
		}
		fmt.Fprintln(usage, "switches compares each switch's default with another value: bench switches -h tells more.")
		fmt.Fprintln(usage, "kernels runs kernels of the examples in turns with their MPI versions: bench kernels -h tells more.")
		fmt.Fprintln(usage, "paper reproduces figures of papers in virtual time: bench paper -h tells more.")
		fmt.Fprintln(usage, "scale shows how time and memory grow with the number of ranks: bench scale -h tells more.")
		fmt.Fprintln(usage, "report draws its measurements and writes a page: bench report -h tells more.")
		fmt.Fprintln(usage, "gate fails if cells are slower than they were at an earlier commit: bench gate -h tells more.")
		defaults := "The defaults without schemes (bench schemes -h tells those with it):"
		if o.schemes {
			defaults = "The defaults with schemes:"
		}
		fmt.Fprintln(usage, defaults)
		flags.SetOutput(usage)
		flags.PrintDefaults()
		fmt.Fprint(usage, cli.ExitStatuses+"  As a rank of a launcher it ends with 3 if it failed because another rank did.\n")
		return nil, err
	case err != nil:
		return nil, cli.Usagef("%v; -h tells the flags", err)
	}
	for _, text := range switches {
		if err := o.settings.set(text); err != nil {
			return nil, err
		}
	}
	if sizes != "" {
		if o.sizes, err = parseSizes(sizes); err != nil {
			return nil, err
		}
	}
	named := flags.Args()
	if o.schemes && len(named) == 0 {
		if o.sizes != nil {
			return nil, cli.Usagef("-size is for named cases; those of schemes without names have their own")
		}
		named = patterns()
	}
	if o.cases, err = parseCases(named); err != nil {
		return nil, err
	}
	for _, c := range o.cases {
		if o.sizes != nil && c.sizes != nil {
			return nil, cli.Usagef("-size %s beside %s: allowed are -size for cases without sizes of their own, or sizes behind each case, as %s:8,1024", sizes, spellSelection(c), c.c.name)
		}
	}
	if o.deviceGiven = o.device != ""; !o.deviceGiven {
		o.device = device
	}
	given := make(map[string]bool)
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	if err := o.simulate(given); err != nil {
		return nil, err
	}
	if o.schemes {
		if err := o.checkSchemes(given); err != nil {
			return nil, err
		}
	}
	return o, o.check(given)
}

// cardOf returns the profile of a simulated device.
func cardOf(device string) (sim.Profile, error) {
	name := strings.TrimPrefix(device, deviceSim)
	card, err := sim.ByName(name)
	if err != nil {
		return card, cli.Usagef("-device %s: there is no profile %q; allowed are %s", device, name, strings.Join(sim.Profiles(), ", "))
	}
	return card, nil
}

// simulate sets the profile of a simulated device.
func (o *options) simulate(given map[string]bool) error {
	if !strings.HasPrefix(o.device, deviceSim) {
		return nil
	}
	card, err := cardOf(o.device)
	if err != nil {
		return err
	}
	o.card = &card
	if !given["repeat"] {
		o.repeat = simulatedLoops
	}
	if o.schemes && !given["rounds"] {
		o.rounds = simulatedRounds
	}
	return nil
}

// simulatedLoops are enough in virtual time: in the first the library may still register memory of its own.
const simulatedLoops = 2

// simulatedRounds is the number of rounds of schemes in virtual time, where only the adaptive one differs from round
// to round.
const simulatedRounds = 3

// linked reports whether ranks reach each other over links of a network, real or simulated.
func (o *options) linked() bool {
	return o.device == deviceTCP || o.device == deviceIBV || o.card != nil
}

// checkSchemes rejects options that a run of schemes cannot have.
func (o *options) checkSchemes(given map[string]bool) error {
	for _, name := range []string{"peers", "repeat", "allocs", "percentiles", "trace"} {
		if given[name] {
			return cli.Usagef("-%s is for runs without schemes", name)
		}
	}
	switch {
	case !o.linked():
		return cli.Usagef("-device %s: schemes are of what goes over a network or is simulated; on mapped memory nothing is deferred", o.device)
	case o.card != nil && o.card.Name == sim.Ideal().Name:
		return cli.Usagef("-device %s: schemes are compared by their time, and there nothing takes any", o.device)
	case o.settings.arranged != "":
		return cli.Usagef("-set %s: schemes throws that switch itself", o.settings.arranged)
	}
	for _, s := range o.cases {
		if s.c.origin == nil || s.c.sample != nil || s.c.scene == collective || s.c.scene == messages {
			return cli.Usagef("%s is not a case of schemes: it has no epochs to arrange, or times them one by one", s.c.name)
		}
	}
	return nil
}

// check rejects values that no run can have.
func (o *options) check(given map[string]bool) error {
	switch {
	case given["n"] && (o.ranks < 1 || o.ranks > maxRanks):
		return cli.Usagef("-n %d: allowed are 1 to %d ranks", o.ranks, maxRanks)
	case o.card == nil && !slices.Contains(devices, o.device):
		return cli.Usagef("-device %q: allowed are %s", o.device, strings.Join(devices, ", "))
	case o.repeat < 1:
		return cli.Usagef("-repeat %d: at least 1", o.repeat)
	case given["shorten"] && o.shorten < 1:
		return cli.Usagef("-shorten %d: at least 1", o.shorten)
	case o.peers && o.shorten > 1:
		return cli.Usagef("-shorten is for runs without -peers, whose programs have loops of a fixed length")
	case o.rounds < 1:
		return cli.Usagef("-rounds %d: at least 1", o.rounds)
	case o.timeout <= 0:
		return cli.Usagef("-timeout %v: more than 0", o.timeout)
	case o.format != "text" && o.format != "json":
		return cli.Usagef("-format %q: allowed are text and json", o.format)
	case given["rounds"] && !o.peers && !o.schemes:
		return cli.Usagef("-rounds is for -peers and schemes; -repeat is the number of loops")
	case o.settings.network != "" && o.device != deviceTCP:
		return cli.Usagef("-set %s is of what goes over TCP: say -device %s too", o.settings.network, deviceTCP)
	case o.settings.shared != "" && o.device != deviceShm:
		return cli.Usagef("-set %s is of memory that processes share: say -device %s", o.settings.shared, deviceShm)
	case o.settings.link != "" && !o.linked():
		return cli.Usagef("-set %s is of what goes over links: say -device %s, %s or %sPROFILE too", o.settings.link, deviceTCP, deviceIBV, deviceSim)
	case o.peers && o.card != nil:
		return cli.Usagef("-peers is for real devices: no peer runs in virtual time")
	case o.peers && o.device == deviceIBV:
		return cli.Usagef("-peers is for -device %s, %s and %s: what to hold -device %s against is the same card's perftest, with which verbs/ibv/softroce compares", deviceLocal, deviceShm, deviceTCP, deviceIBV)
	case given["seed"] && o.card == nil:
		return cli.Usagef("-seed is for -device %sPROFILE", deviceSim)
	case given["rails"] && o.card == nil:
		return cli.Usagef("-rails is for -device %sPROFILE; real ranks have as many as RMA_ADDRESS lists addresses, or RMA_IBV_DEVICE cards, with commas between them", deviceSim)
	case o.rails < 1 || o.rails > maxRails:
		return cli.Usagef("-rails %d: allowed are 1 to %d", o.rails, maxRails)
	case o.trace != "" && !o.linked():
		return cli.Usagef("-trace is for -device %s, %s and %sPROFILE: loads and stores of mapped memory are not traced", deviceTCP, deviceIBV, deviceSim)
	case o.trace != "" && o.peers:
		return cli.Usagef("-trace is for runs without -peers, which runs many jobs")
	case o.allocs && (o.peers || o.format != "json"):
		return cli.Usagef("-allocs is told by -format json only, without -peers")
	case o.peers && o.percentiles:
		return cli.Usagef("-percentiles is for runs without -peers, whose programs tell no distribution")
	case o.peers && o.profile != "":
		return cli.Usagef("-cpuprofile is for runs without -peers, which runs many jobs")
	}
	return nil
}

// maxRails is the greatest number of cards of a rank.
const maxRails = 8

// maxRanks keeps a typing error from starting a hundred thousand processes.
const maxRanks = 4096

func defaultDevice() string {
	if runtime.GOOS == "linux" {
		return deviceShm
	}
	return deviceLocal
}

func parseSizes(list string) ([]int, error) {
	var sizes []int
	for field := range strings.SplitSeq(list, ",") {
		size, err := strconv.Atoi(strings.TrimSpace(field))
		if err != nil || size < 1 {
			return nil, cli.Usagef("size %q: sizes are whole numbers from 1, with commas between them", field)
		}
		if slices.Contains(sizes, size) {
			return nil, cli.Usagef("size %d is given twice in %s", size, list)
		}
		sizes = append(sizes, size)
	}
	return sizes, nil
}

// spellSelection returns a case with sizes as the command line names it.
func spellSelection(s selection) string {
	return s.c.name + ":" + strings.Trim(strings.ReplaceAll(fmt.Sprint(s.sizes), " ", ","), "[]")
}

func parseCases(args []string) ([]selection, error) {
	var selected []selection
	for _, arg := range args {
		if strings.HasPrefix(arg, "-") {
			return nil, cli.Usagef("%s: flags come before the cases", arg)
		}
		if slices.Contains([]string{cli.Schemes, cli.Switches, cli.Kernels, cli.Paper, cli.Scale, cli.Report, cli.Gate}, arg) {
			return nil, cli.Usagef("%s comes before the flags: bench %s [flags] …", arg, arg)
		}
		name, list, sized := strings.Cut(arg, ":")
		s := selection{c: caseNamed(name)}
		if s.c == nil {
			return nil, cli.Usagef("there is no case %q; there are %s", name, strings.Join(caseNames(), ", "))
		}
		if slices.ContainsFunc(selected, func(other selection) bool { return other.c.name == name }) {
			return nil, cli.Usagef("case %s is named twice; several sizes of it are asked for as %s:8,1024", name, name)
		}
		if sized {
			var err error
			if s.sizes, err = parseSizes(list); err != nil {
				return nil, err
			}
		}
		selected = append(selected, s)
	}
	return selected, nil
}
