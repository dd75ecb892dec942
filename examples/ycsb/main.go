package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/onesided/rma/examples/internal/kernel"
)

func main() { kernel.Main(newKernel()) }

// run runs a rank. The others sleep until rank 0 has measured Redis.
func (o *options) run(ctx context.Context, k *kernel.Rank) error {
	apart := false
	for other := range k.Size() {
		apart = apart || !k.Mapped(other)
	}
	r, err := measure(ctx, k.World, *o)
	if err != nil || k.Rank() != 0 {
		return err
	}
	if err := r.print(k.Out, *o, k.Size()); err != nil || !o.redis {
		return err
	}
	redis, err := measureRedis(ctx, *o, k.Size(), apart)
	if err != nil {
		return err
	}
	return redis.print(k.Out, *o, k.Size(), r.rate)
}

// print prints a table of the latencies of the operations.
func (r *result) print(out io.Writer, o options, ranks int) error {
	if _, err := fmt.Fprintf(out, "workload %s, %s, %d ranks, %d records of %d bytes, batches of %d: %.0f operations/s\n\n", o.name, o.distribution, ranks, o.records, o.value, o.batch, r.rate); err != nil {
		return err
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "operation\tcount\tp50\tp95\tp99\tp99.9\t")
	for kind := range r.latencies {
		h := &r.latencies[kind]
		if n := h.Total(); n > 0 {
			fmt.Fprintf(table, "%s\t%d\t%v\t%v\t%v\t%v\t\n", kindNames[kind], n, h.Quantile(0.5), h.Quantile(0.95), h.Quantile(0.99), h.Quantile(0.999))
		}
	}
	return table.Flush()
}

// print prints Redis's rates and the ratio of rate to them.
func (r redisRates) print(out io.Writer, o options, clients int, rate float64) error {
	mixed := r.mixed(o.workload)
	_, err := fmt.Fprintf(out, "\nRedis, %d clients, pipelines of %d: GET %.0f/s, SET %.0f/s, workload %s %.0f operations/s; the table does %.1f times that\n",
		clients, r.pipeline, r.get, r.set, o.name, mixed, rate/mixed)
	return err
}
