package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"text/tabwriter"

	"github.com/onesided/rma/world"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(command(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// command carries out a command line as a rank of the job that this process was started for,
// and returns the exit status.
func command(ctx context.Context, arguments []string, out, errout io.Writer) int {
	o, err := parse(arguments, out)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintf(errout, "ycsb: %v\nycsb -h explains the usage\n", err)
		return 2
	}
	if err := asRank(ctx, o, out); err != nil {
		fmt.Fprintf(errout, "ycsb: %v\n", err)
		return 1
	}
	return 0
}

func asRank(ctx context.Context, o options, out io.Writer) error {
	w, err := world.Init(ctx)
	if err != nil {
		return err
	}
	rank, size, apart := w.Rank(), w.Size(), false
	for other := range size {
		apart = apart || other != rank && !w.Mapped(other)
	}
	r, err := run(ctx, w, o)
	if err != nil && (ctx.Err() != nil || w.Failures() > 0) {
		// The end of the process tells the others.
		return err
	}
	if err := errors.Join(err, w.Close()); err != nil || rank != 0 {
		return err
	}
	if err := r.print(out, o, size); err != nil || !o.redis {
		return err
	}
	redis, err := measureRedis(ctx, o, size, apart)
	if err != nil {
		return err
	}
	return redis.print(out, o, size, r.rate)
}

// print prints a table of what the operations took.
func (r *result) print(out io.Writer, o options, ranks int) error {
	if _, err := fmt.Fprintf(out, "workload %s, %s, %d ranks, %d records of %d bytes, batches of %d: %.0f operations/s\n\n", o.name, o.distribution, ranks, o.records, o.value, o.batch, r.rate); err != nil {
		return err
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "operation\tcount\tp50\tp95\tp99\tp99.9\t")
	for kind := range r.latencies {
		h := &r.latencies[kind]
		if n := h.total(); n > 0 {
			fmt.Fprintf(table, "%s\t%d\t%v\t%v\t%v\t%v\t\n", kindNames[kind], n, h.quantile(0.5), h.quantile(0.95), h.quantile(0.99), h.quantile(0.999))
		}
	}
	return table.Flush()
}

// print prints Redis's rates, and how many times that rate is.
func (r redisRates) print(out io.Writer, o options, clients int, rate float64) error {
	mixed := r.mixed(o.workload)
	_, err := fmt.Fprintf(out, "\nRedis, %d clients, pipelines of %d: GET %.0f/s, SET %.0f/s, workload %s %.0f operations/s; the table does %.1f times that\n",
		clients, r.pipeline, r.get, r.set, o.name, mixed, rate/mixed)
	return err
}
