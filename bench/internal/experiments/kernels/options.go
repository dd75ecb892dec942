package kernels

import (
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
	"github.com/onesided/rma/bench/internal/peers"
)

// Options are the command line after the word.
type Options struct {
	Device      string
	Rounds      int
	Ranks       int
	Prk         string // "" or a directory
	Timeout     time.Duration
	PeerTimeout time.Duration // for peers
	Kernels     []*Kernel
}

// Timeout is the longest time of a run of a kernel.
const Timeout = time.Minute

// PRKUsage explains the flag -prk.
const PRKUsage = "a `directory` with the Parallel Research Kernels as built with the peers, to be run beside ours: stencil.openmpi, stencil.mpich, transpose.openmpi, transpose.mpich, or some of them"

// parse reads the command line. It writes the help, if requested, to usage.
func parse(args []string, usage io.Writer) (*Options, error) {
	o := new(Options)
	flags := flag.NewFlagSet("bench kernels", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&o.Device, "device", device.Shm, "shm: ranks are processes that share memory; tcp: processes over TCP on loopback, and the peers over TCP too")
	flags.IntVar(&o.Rounds, "rounds", 5, "rounds, in each of which all libraries run a kernel before the next")
	flags.IntVar(&o.Ranks, "n", 2, "number of ranks; the goals are for 2; gups of the peers needs a power of two")
	flags.StringVar(&o.Prk, "prk", "", PRKUsage)
	flags.DurationVar(&o.Timeout, "timeout", Timeout, "the longest that one kernel may take")
	flags.DurationVar(&o.PeerTimeout, "peer-timeout", Timeout, "the longest that one kernel of a peer may take, because a peer may hang")
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintln(usage, "usage: go run ./bench kernels [flags] [kernel …]")
		fmt.Fprintln(usage, "Measures kernels of the examples as whole jobs, alternating with their MPI versions; no kernel: all of them. It builds")
		fmt.Fprintln(usage, "them, so it runs inside this module only. The MPI versions are those of the Parallel Research Kernels (MPIRMA), which")
		fmt.Fprintln(usage, "-prk names as built with each peer, and of gups examples/gups/peer/gups.c, which it builds. Kernels and sizes:")
		for _, k := range named(UsualSizes(o.Device), nil) {
			fmt.Fprintf(usage, "  %-10s %-48s %s\n", k.name, strings.Join(k.mine, " "), k.Case.About)
		}
		flags.SetOutput(usage)
		flags.PrintDefaults()
		fmt.Fprint(usage, cli.ExitStatuses)
		return nil, err
	case err != nil:
		return nil, cli.Usagef("%v; -h lists the flags", err)
	case !slices.Contains(Devices, o.Device):
		return nil, cli.Usagef("-device %q: kernels have %s", o.Device, strings.Join(Devices, " and "))
	case o.Rounds < 1:
		return nil, cli.Usagef("-rounds %d: at least 1", o.Rounds)
	case o.Ranks < 1 || o.Ranks > device.MaxRanks:
		return nil, cli.Usagef("-n %d: allowed are 1 to %d ranks", o.Ranks, device.MaxRanks)
	case o.Timeout <= 0:
		return nil, cli.Usagef("-timeout %v: more than 0", o.Timeout)
	case o.PeerTimeout <= 0:
		return nil, cli.Usagef("-peer-timeout %v: more than 0", o.PeerTimeout)
	}
	if err := cli.CheckNamed("kernel", flags.Args(), Names); err != nil {
		return nil, err
	}
	if o.Prk, err = CheckPRK(o.Prk); err != nil {
		return nil, err
	}
	o.Choose(UsualSizes(o.Device), flags.Args())
	return o, nil
}

// names returns the names of the kernels' commands.
func (o *Options) names() (names []string) {
	for _, k := range o.Kernels {
		names = append(names, k.name)
	}
	return slices.Compact(names)
}

// Choose selects the kernels with these names. Kernels without a peer count as our own.
func (o *Options) Choose(sizes sizes, names []string) {
	o.Kernels = named(sizes, names)
	for _, k := range o.Kernels {
		k.Case.Ours = o.Prk == "" && k.name != Names[0]
	}
}

// CheckPRK returns the absolute path of dir. It returns an error if dir has nothing to run.
func CheckPRK(dir string) (string, error) {
	if dir == "" {
		return "", nil
	}
	var names []string
	for _, kernel := range Names[1:] {
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
