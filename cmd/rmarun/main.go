package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

const usage = `usage: rmarun -n N [flags] PROGRAM|PACKAGE [ARGS...]

Starts N ranks of a job as processes on this machine. A Go package (a directory,
./path or import path) is built first; any other name is a program. Flags after it
are its own.

flags:
`

const usageEnd = `
environment of each rank: PMI_FD, PMI_RANK (0 to N-1), PMI_SIZE (N),
  MPI_LOCALRANKID, MPI_LOCALNRANKS, GOMAXPROCS if it is not set (the cores by N, at
  least 1), and what -env adds.

signals: SIGINT, SIGTERM, SIGHUP and SIGQUIT go to all processes of the ranks. Those that
  have not ended after the grace are killed; a second SIGINT kills at once. SIGHUP and SIGINT
  that were ignored when rmarun started, as by nohup, stay ignored, also for the ranks. On
  Linux so does SIGTSTP. SIGTERM and SIGQUIT do not: Go's runtime replaces them first.

exit status: that of the rank that failed first by itself, 128 + number if a signal
  ended it; 128 + the number of a signal that ended the job before that, however the
  ranks end then; the status of the first abort, never 0; 1 if the job could not be
  started or its output not be written; 2 for wrong usage. A rank that ends with 0
  without closing its World is named, but has not failed.

examples:
  rmarun -n 4 ./examples/wordcount -verify /usr/share/doc
  rmarun -n 2 -label -env GOMAXPROCS=4 ./myprogram
`

// maxRanks is the greatest -n: more processes than this are a mistake.
const maxRanks = 4096

// options are the options of the command line.
type options struct {
	ranks       int
	label       bool
	keepGoing   bool
	grace       time.Duration
	environment []string
	program     string
	arguments   []string
	// leaveTime is the time to wait for the end of a rank whose connection has ended, and for the end of killed
	// processes. outputTime is the time to wait for the output of a rank that has ended: a process that it left
	// behind may hold its streams. Both are one second except in tests.
	leaveTime, outputTime time.Duration
	// reportTime is the time from the first failure until rmarun ends the other ranks: 200 ms except in tests. In it
	// the ranks report the reason.
	reportTime time.Duration
}

// identifying are the variables that say which rank of which job a process is.
var identifying = []string{"PMI_FD", "PMI_RANK", "PMI_SIZE", "PMI_PORT", "PMI_ID", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"}

var errUsage = errors.New("wrong usage")

func main() { os.Exit(command(func(*options) {})) }

// command runs rmarun and returns the exit status. set may change the options.
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

// parse reads the command line. It writes the help, if requested, to help.
func parse(arguments []string, help io.Writer) (*options, error) {
	o := &options{grace: 3 * time.Second, leaveTime: time.Second, outputTime: time.Second, reportTime: 200 * time.Millisecond}
	flags := flag.NewFlagSet("rmarun", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Func("n", fmt.Sprintf("`number` of ranks, 1 to %d (required)", maxRanks), func(s string) (err error) {
		if o.ranks, err = strconv.Atoi(s); err != nil || o.ranks < 1 || o.ranks > maxRanks {
			return fmt.Errorf("allowed are 1 to %d", maxRanks)
		}
		return nil
	})
	whether := func(name, usage string, is *bool) {
		flags.BoolFunc(name, usage, func(s string) (err error) {
			if *is, err = strconv.ParseBool(s); err != nil {
				return errors.New("allowed are true and false")
			}
			return nil
		})
	}
	whether("label", "begin each line with the number of the rank that wrote it", &o.label)
	whether("keep-going", "when a rank fails, let the others continue", &o.keepGoing)
	flags.Func("grace", fmt.Sprintf("time in which ranks must end after a signal, a `duration` (default %v)", o.grace), func(s string) (err error) {
		if o.grace, err = time.ParseDuration(s); err != nil || o.grace < 0 {
			return errors.New("allowed are 0 and durations with their unit, such as 500ms or 10s")
		}
		return nil
	})
	flags.Func("env", "set a variable in the environment of the ranks, as `K=V`; may be repeated", func(s string) error {
		name, _, ok := strings.Cut(s, "=")
		switch {
		case !ok || name == "":
			return errors.New("not of the form K=V")
		case slices.Contains(identifying, name):
			return fmt.Errorf("only rmarun says which rank of the job a process is; allowed are variables other than %s", strings.Join(identifying, ", "))
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
	case flags.Arg(0) == "":
		return nil, fmt.Errorf("%w: no PROGRAM or PACKAGE given", errUsage)
	case o.ranks == 0:
		return nil, fmt.Errorf("%w: -n is required: how many ranks, 1 to %d", errUsage, maxRanks)
	}
	o.program, o.arguments = flags.Arg(0), flags.Args()[1:]
	return o, nil
}
