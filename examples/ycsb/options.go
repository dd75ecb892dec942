package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
)

const (
	uniform = "uniform"
	zipf    = "zipfian"
)

// A mix of operations: what part of all reads, and what the others do.
type workload struct {
	reads float64
	other kind
}

var workloads = map[string]workload{"A": {0.5, update}, "B": {0.95, update}, "C": {1, update}, "F": {0.5, modify}}

type options struct {
	name         string
	workload     workload
	records      int
	value        int
	distribution string
	batch        int
	operations   int
	redis        bool
}

var errUsage = errors.New("wrong usage")

// parse reads a command line. Usage goes to out.
func parse(arguments []string, out io.Writer) (o options, err error) {
	flags := flag.NewFlagSet("ycsb", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.StringVar(&o.name, "workload", "A", "A, B, C or F")
	flags.IntVar(&o.records, "records", 100_000, "how many `records` there are")
	flags.IntVar(&o.value, "value", 64, fmt.Sprintf("how many `bytes` a value has, %d to 4096", leastValue))
	flags.StringVar(&o.distribution, "distribution", zipf, zipf+" or "+uniform)
	flags.IntVar(&o.batch, "batch", 64, "how many operations are in a `batch`")
	flags.IntVar(&o.operations, "operations", 4_000_000, "how many operations all ranks do together")
	flags.BoolVar(&o.redis, "redis", false, "put the load on Redis too")
	if err := flags.Parse(arguments); err != nil {
		return o, err
	}
	o.name = strings.ToUpper(o.name)
	known := false
	o.workload, known = workloads[o.name]
	switch {
	case flags.NArg() > 0:
		err = fmt.Errorf("%w: %q is no flag", errUsage, flags.Arg(0))
	case !known:
		err = fmt.Errorf("%w: -workload %q, allowed are A, B, C and F", errUsage, o.name)
	case o.records < 1 || o.records > 100_000_000:
		err = fmt.Errorf("%w: -records %d, allowed are 1 to 100000000", errUsage, o.records)
	case o.value < leastValue || o.value > 4096:
		err = fmt.Errorf("%w: -value %d, allowed are %d to 4096", errUsage, o.value, leastValue)
	case o.distribution != zipf && o.distribution != uniform:
		err = fmt.Errorf("%w: -distribution %q, allowed are %s and %s", errUsage, o.distribution, zipf, uniform)
	case o.batch < 1 || o.batch > 100_000:
		err = fmt.Errorf("%w: -batch %d, allowed are 1 to 100000", errUsage, o.batch)
	case o.operations < 1 || o.operations > 1_000_000_000:
		err = fmt.Errorf("%w: -operations %d, allowed are 1 to 1000000000", errUsage, o.operations)
	}
	return o, err
}
