package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
)

const usage = `usage: rmarun -n N [flags] PROGRAM|PACKAGE [ARGS...]

Starts N ranks of a job as processes on this machine. A Go package (a directory,
./path or import path) is built first; anything else is a program. Flags after it
are its own.

flags:
`

const usageEnd = `
environment of each rank: PMI_FD, PMI_RANK (0 to N-1), PMI_SIZE (N),
  MPI_LOCALRANKID, MPI_LOCALNRANKS, GOMAXPROCS if it is not set (the cores by N, at
  least 1), and what -env adds.

exit status: that of the rank that failed first by itself, 128 + number if a signal
  ended it; 128 + the number of a signal that came to rmarun before; the first abort's,
  which is not 0; 1 if the job could not be started or its output not be written; 2 for
  wrong usage. A rank that ends with 0 without closing its World is named, but has not
  failed.

examples:
  rmarun -n 4 ./examples/wordcount -verify /usr/share/doc
  rmarun -n 2 -label -env GOMAXPROCS=4 ./myprogram
`

// maxRanks bounds -n: more processes than this are a mistake.
const maxRanks = 4096

// options of the command line.
type options struct {
	ranks       int
	label       bool
	keepGoing   bool
	grace       time.Duration
	environment []string
	program     string
	arguments   []string
	// leaveTime is how long the end of a rank is waited for whose connection has ended, and that of what has been killed;
	// outputTime the output of a rank that has ended: a process that it left behind may hold its streams. Both are a
	// second, but in tests.
	leaveTime, outputTime time.Duration
	// tellTime is from the first failure until rmarun ends the other ranks, 200 ms but in tests: it is there to say why.
	tellTime time.Duration
}

var errUsage = errors.New("wrong usage")

func main() { os.Exit(command(func(*options) {})) }

// command is what rmarun does, with options that set may change, and returns the exit status.
func command(set func(o *options)) (status int) {
	if os.Args[0] == listenerName {
		return listen()
	}
	o, err := parse(os.Args[1:], os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintf(os.Stderr, "rmarun: %v\nrmarun -h explains the usage\n", err)
		return 2
	}
	set(o)
	status, err = run(o)
	if err != nil {
		fmt.Fprintf(os.Stderr, "rmarun: %v\n", err)
	}
	return status
}

// parse reads the command line. It writes the help, if that is asked for, to help.
func parse(arguments []string, help io.Writer) (*options, error) {
	o := &options{leaveTime: time.Second, outputTime: time.Second, tellTime: 200 * time.Millisecond}
	flags := flag.NewFlagSet("rmarun", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Func("n", fmt.Sprintf("`number` of ranks, 1 to %d (required)", maxRanks), func(s string) (err error) {
		if o.ranks, err = strconv.Atoi(s); err != nil || o.ranks < 1 || o.ranks > maxRanks {
			return fmt.Errorf("allowed are 1 to %d", maxRanks)
		}
		return nil
	})
	flags.BoolVar(&o.label, "label", false, "begin each line with the number of the rank that wrote it")
	flags.BoolVar(&o.keepGoing, "keep-going", false, "when a rank fails, let the others go on")
	flags.DurationVar(&o.grace, "grace", 3*time.Second, "how long ranks have to end after a signal, a `duration` such as 500ms")
	flags.Func("env", "set a variable in the environment of the ranks, as `K=V`; may be repeated", func(s string) error {
		if name, _, ok := strings.Cut(s, "="); !ok || name == "" {
			return errors.New("not of the form K=V")
		}
		o.environment = append(o.environment, s)
		return nil
	})
	err := flags.Parse(arguments)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(help, usage)
		flags.SetOutput(help)
		flags.PrintDefaults()
		fmt.Fprint(help, usageEnd)
		return nil, err
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", errUsage, err)
	case flags.NArg() == 0:
		return nil, fmt.Errorf("%w: no PROGRAM or PACKAGE given", errUsage)
	case o.ranks == 0:
		return nil, fmt.Errorf("%w: -n is required: how many ranks, 1 to %d", errUsage, maxRanks)
	case o.grace < 0:
		return nil, fmt.Errorf("%w: -grace %v must not be negative", errUsage, o.grace)
	}
	o.program, o.arguments = flags.Arg(0), flags.Args()[1:]
	return o, nil
}
