package main

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

	"github.com/onesided/rma/bench/internal/cases"
	"github.com/onesided/rma/bench/internal/cli"
	"github.com/onesided/rma/bench/internal/compare"
	"github.com/onesided/rma/bench/internal/device"
	"github.com/onesided/rma/bench/internal/machine"
	"github.com/onesided/rma/bench/internal/peers"
	"github.com/onesided/rma/bench/internal/stats"
	"github.com/onesided/rma/bench/internal/table"
)

// kernelNames are the kernels' commands in examples, and the names of the peers' programs. Those after the first have
// their peers in the Parallel Research Kernels.
var kernelNames = []string{"gups", "stencil", "transpose"}

// A benchKernel is a line of the table: a command of examples that is measured as a whole job.
type benchKernel struct {
	name string
	cases.Cell
	// mine and theirs are the arguments of our command and of the peers'.
	mine, theirs []string
	// seconds is about the time of one run.
	seconds float64
}

// kernelSizes are the sizes of the kernels.
type kernelSizes struct{ log, order, iterations int }

// kernelDevices are the devices that jobs of kernels may use.
var kernelDevices = []string{device.Shm, device.TCP}

func usualSizes(deviceName string) kernelSizes {
	sizes := kernelSizes{log: 22, order: 1000, iterations: 300}
	if deviceName == device.TCP {
		sizes.log = 20
	}
	return sizes
}

// kernelsOf returns the kernels with these names, or all without names.
func kernelsOf(sizes kernelSizes, names []string) []*benchKernel {
	log, order, iterations := fmt.Sprint(sizes.log), fmt.Sprint(sizes.order), fmt.Sprint(sizes.iterations)
	stencil := func(sync, about string) *benchKernel {
		c := &cases.Case{Name: "stencil_" + sync, Unit: stats.Megaflops, About: about}
		return &benchKernel{"stencil", cases.Cell{Case: c, Size: sizes.order}, []string{"-n", order, "-iterations", iterations, "-sync", sync}, []string{iterations, order}, 1}
	}
	all := []*benchKernel{
		{
			"gups", cases.Cell{Case: &cases.Case{Name: "gups", Unit: stats.Operations, About: "RandomAccess: updates of random words of 2^size"}, Size: sizes.log},
			[]string{"-log", log}, []string{log}, 7,
		},
		stencil("pscw", "Stencil of that order, synchronized by post, start, complete and wait"),
		stencil("fence", "the same, synchronized by fences"),
		{
			"transpose", cases.Cell{Case: &cases.Case{Name: "transpose", Unit: stats.Megabytes, About: "Transpose of that order, in tiles of 32"}, Size: sizes.order},
			[]string{"-order", order, "-iterations", iterations}, []string{iterations, order, "32"}, 1,
		},
	}
	return slices.DeleteFunc(all, func(k *benchKernel) bool { return len(names) > 0 && !slices.Contains(names, k.name) })
}

// kernelOptions are the command line after the word.
type kernelOptions struct {
	device      string
	rounds      int
	ranks       int
	prk         string // "" or a directory
	timeout     time.Duration
	peerTimeout time.Duration // for peers
	kernels     []*benchKernel
}

// kernelTimeout is the longest time of a run of a kernel.
const kernelTimeout = time.Minute

const prkUsage = "a `directory` with the Parallel Research Kernels as built with the peers, to be run beside ours: stencil.openmpi, stencil.mpich, transpose.openmpi, transpose.mpich, or some of them"

// parseKernels reads the command line. It writes the help, if requested, to usage.
func parseKernels(args []string, usage io.Writer) (*kernelOptions, error) {
	o := new(kernelOptions)
	flags := flag.NewFlagSet("bench kernels", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&o.device, "device", device.Shm, "shm: ranks are processes that share memory; tcp: processes over TCP on loopback, and the peers over TCP too")
	flags.IntVar(&o.rounds, "rounds", 5, "rounds, in each of which all libraries run a kernel before the next")
	flags.IntVar(&o.ranks, "n", 2, "number of ranks; the goals are for 2; gups of the peers needs a power of two")
	flags.StringVar(&o.prk, "prk", "", prkUsage)
	flags.DurationVar(&o.timeout, "timeout", kernelTimeout, "the longest that one kernel may take")
	flags.DurationVar(&o.peerTimeout, "peer-timeout", kernelTimeout, "the longest that one kernel of a peer may take, because a peer may hang")
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintln(usage, "usage: go run ./bench kernels [flags] [kernel …]")
		fmt.Fprintln(usage, "Measures kernels of the examples as whole jobs, in turns with their MPI versions; no kernel: all of them. It builds")
		fmt.Fprintln(usage, "them, so it runs inside this module only. The MPI versions are those of the Parallel Research Kernels (MPIRMA), which")
		fmt.Fprintln(usage, "-prk names as built with each peer, and of gups examples/gups/peer/gups.c, which it builds. Kernels and sizes:")
		for _, k := range kernelsOf(usualSizes(o.device), nil) {
			fmt.Fprintf(usage, "  %-10s %-48s %s\n", k.name, strings.Join(k.mine, " "), k.Case.About)
		}
		flags.SetOutput(usage)
		flags.PrintDefaults()
		fmt.Fprint(usage, cli.ExitStatuses)
		return nil, err
	case err != nil:
		return nil, cli.Usagef("%v; -h tells the flags", err)
	case !slices.Contains(kernelDevices, o.device):
		return nil, cli.Usagef("-device %q: kernels have %s", o.device, strings.Join(kernelDevices, " and "))
	case o.rounds < 1:
		return nil, cli.Usagef("-rounds %d: at least 1", o.rounds)
	case o.ranks < 1 || o.ranks > device.MaxRanks:
		return nil, cli.Usagef("-n %d: allowed are 1 to %d ranks", o.ranks, device.MaxRanks)
	case o.timeout <= 0:
		return nil, cli.Usagef("-timeout %v: more than 0", o.timeout)
	case o.peerTimeout <= 0:
		return nil, cli.Usagef("-peer-timeout %v: more than 0", o.peerTimeout)
	}
	if err := cli.CheckNamed("kernel", flags.Args(), kernelNames); err != nil {
		return nil, err
	}
	if o.prk, err = checkPRK(o.prk); err != nil {
		return nil, err
	}
	o.choose(usualSizes(o.device), flags.Args())
	return o, nil
}

// names returns the names of the kernels' commands.
func (o *kernelOptions) names() (names []string) {
	for _, k := range o.kernels {
		names = append(names, k.name)
	}
	return slices.Compact(names)
}

// choose selects the kernels with these names. Kernels without a peer count as our own.
func (o *kernelOptions) choose(sizes kernelSizes, names []string) {
	o.kernels = kernelsOf(sizes, names)
	for _, k := range o.kernels {
		k.Case.Ours = o.prk == "" && k.name != kernelNames[0]
	}
}

// checkPRK returns the absolute path of dir. It returns an error if dir has nothing to run.
func checkPRK(dir string) (string, error) {
	if dir == "" {
		return "", nil
	}
	var names []string
	for _, kernel := range kernelNames[1:] {
		for _, p := range peers.Known() {
			name := kernel + "." + p.Name
			if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
				return filepath.Abs(dir)
			}
			names = append(names, name)
		}
	}
	return "", cli.Usagef("-prk %s: there is none of %s", dir, strings.Join(names, ", "))
}

// runKernels is the run of kernels.
func runKernels(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parseKernels(args, stderr)
	if err != nil {
		return err
	}
	if device.Launched() {
		return cli.Usagef("kernels starts ranks itself: run it without a launcher")
	}
	return o.run(ctx, cli.CommandLine(append([]string{cli.Kernels}, args...)), stdout, stderr)
}

func (o *kernelOptions) run(ctx context.Context, command string, stdout, stderr io.Writer) error {
	dir, err := os.MkdirTemp("", "rma-bench-")
	if err != nil {
		return fmt.Errorf("bench: no place for the kernels: %w", err)
	}
	defer os.RemoveAll(dir)
	say, done := cli.Progress(stderr)
	defer done()
	say("building the kernels")
	peers, missing := peers.Find(ctx)
	peers, unbuilt, err := buildKernels(ctx, dir, o.names(), peers)
	if err != nil {
		return err
	}
	c := o.comparison(peers, append(missing, unbuilt...))
	c.Command = command
	rows, ended := compare.Run(ctx, o.device, o.jobs(), o.contestants(dir, peers), o.rounds, say)
	c.Rows = rows
	c.End(ended)
	done()
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s\n%s\n", c.Command, c.Machine, strings.Join(howKernels(c), "\n"))
	c.WriteEnded(&b)
	b.WriteString("\n")
	c.WriteTable(&b)
	_, err = io.WriteString(stdout, b.String())
	if err := errors.Join(ended, err); err != nil {
		return err
	}
	return c.OurFailures()
}

// comparison returns the comparison of the kernels before the first round.
func (o *kernelOptions) comparison(peers []*peers.Peer, missing []string) *compare.Table {
	c := &compare.Table{
		Machine: machine.This(), Ours: device.Describe(o.device, o.ranks),
		Rounds: o.rounds, Repeat: 1, Missing: missing, Columns: []string{compare.Ours}, Spreads: true,
	}
	for _, p := range peers {
		c.Peers, c.Columns = append(c.Peers, p.Title+" "+p.Version+p.Over(o.device)), append(c.Columns, p.Name)
	}
	if slices.ContainsFunc(o.kernels, func(k *benchKernel) bool { return k.Case.Ours }) {
		c.Missing = append(slices.Clone(missing), "stencil and transpose are ours alone: -prk DIR has the Parallel Research Kernels beside them, built by you as DIR/stencil.openmpi and so on (-h)")
	}
	return c
}

// howKernels explains how to read the figures of a comparison of kernels.
func howKernels(c *compare.Table) []string {
	return []string{
		"ours: " + strings.Join(append([]string{c.Ours}, c.Peers...), "; "),
		fmt.Sprintf("Medians of %s of whole jobs, with the lowest and the highest. A round goes kernel by kernel: everyone runs one before the next.", table.Plural(c.Rounds, "round")),
		"ratio: ours to the better peer within a round, of which the median counts; rounds: the lowest and the highest. More is better.",
	}
}
