package main

import (
	"fmt"
	"os/exec"
	"strings"

	"github.com/onesided/rma/examples/internal/kernel"
)

const (
	uniform = "uniform"
	zipf    = "zipfian"
)

// A workload is a mix of operations: the fraction of reads, and the kind of the others.
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

const more = `Prints the operations a second of all ranks together, and for each kind of operation how long it took at most in
so many of a hundred cases. Every value that is read is verified.`

func newKernel() *kernel.Kernel {
	o := &options{name: "A", records: 100_000, value: 64, distribution: zipf, batch: 64, operations: 4_000_000}
	return &kernel.Kernel{
		Name: "ycsb", About: "Puts a load of the Yahoo! Cloud Serving Benchmark on a hash table that the ranks share", More: more,
		Flags: o.define, Check: func(int) error { return o.check() }, Lacks: o.lacks, Run: o.run,
	}
}

func (o *options) define(f *kernel.Flags) {
	f.StringVar(&o.name, "workload", o.name, "A, half updates; B, one in twenty; C, reads alone; or F, half read-modify-writes")
	f.Number(&o.records, "records", 1, 100_000_000, "have `n` records")
	f.Number(&o.value, "value", leastValue, 4096, "values have `n` bytes")
	f.StringVar(&o.distribution, "distribution", o.distribution, zipf+" or "+uniform)
	f.Number(&o.batch, "batch", 1, 100_000, "carry out `n` operations together")
	f.Number(&o.operations, "operations", 1, 1_000_000_000, "carry out `n` operations on all ranks together")
	f.BoolVar(&o.redis, "redis", false, "put the load on Redis too, by redis-server and redis-benchmark: with pipelines of several depths, of which the best counts")
}

// check returns an error if a flag that is not a number is wrong, and finds the workload.
func (o *options) check() error {
	o.name = strings.ToUpper(o.name)
	known := false
	if o.workload, known = workloads[o.name]; !known {
		return fmt.Errorf("-workload %q, allowed are A, B, C and F", o.name)
	}
	if o.distribution != zipf && o.distribution != uniform {
		return fmt.Errorf("-distribution %q, allowed are %s and %s", o.distribution, zipf, uniform)
	}
	return nil
}

// lacks returns an error that names the missing programs that rank 0 runs for Redis.
func (o *options) lacks() error {
	if !o.redis {
		return nil
	}
	for _, program := range redisPrograms {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("-redis needs %s, of the packages redis-server and redis-tools in Debian: %w", strings.Join(redisPrograms, " and "), err)
		}
	}
	return nil
}
