package kernels

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/onesided/rma/bench/internal/cli"
	"github.com/onesided/rma/bench/internal/compare"
	"github.com/onesided/rma/bench/internal/device"
	"github.com/onesided/rma/bench/internal/machine"
	"github.com/onesided/rma/bench/internal/peers"
	"github.com/onesided/rma/bench/internal/table"
)

// Run is the run of kernels.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	if device.Launched() {
		return cli.Usagef("kernels starts ranks itself: run it without a launcher")
	}
	return o.run(ctx, cli.CommandLine(append([]string{cli.KernelsCommand}, args...)), stdout, stderr)
}

func (o *Options) run(ctx context.Context, command string, stdout, stderr io.Writer) error {
	dir, err := os.MkdirTemp("", "rma-bench-")
	if err != nil {
		return fmt.Errorf("bench: no place for the kernels: %w", err)
	}
	defer os.RemoveAll(dir)
	show, done := cli.Progress(stderr)
	defer done()
	show("building the kernels")
	peers, missing := peers.Find(ctx)
	peers, unbuilt, err := Build(ctx, dir, o.names(), peers)
	if err != nil {
		return err
	}
	c := o.Table(peers, append(missing, unbuilt...))
	c.Command = command
	rows, ended := compare.Run(ctx, o.Device, o.Jobs(), o.Libraries(dir, peers), o.Rounds, show)
	c.Rows = rows
	c.End(ended)
	done()
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s\n%s\n", c.Command, c.Machine, strings.Join(Explain(c), "\n"))
	c.WriteEnded(&b)
	b.WriteString("\n")
	c.WriteTable(&b)
	_, err = io.WriteString(stdout, b.String())
	if err := errors.Join(ended, err); err != nil {
		return err
	}
	return c.OurFailures()
}

// Table returns the comparison of the kernels before the first round.
func (o *Options) Table(peers []*peers.Peer, missing []string) *compare.Table {
	c := &compare.Table{
		Machine: machine.This(), Ours: device.Describe(o.Device, o.Ranks),
		Rounds: o.Rounds, Repeat: 1, Missing: missing, Columns: []string{compare.Ours}, Spreads: true,
	}
	for _, p := range peers {
		c.Peers, c.Columns = append(c.Peers, p.Title+" "+p.Version+p.Over(o.Device)), append(c.Columns, p.Name)
	}
	if slices.ContainsFunc(o.Kernels, func(k *Kernel) bool { return k.Case.Ours }) {
		c.Missing = append(slices.Clone(missing), "stencil and transpose are ours alone: -prk DIR has the Parallel Research Kernels beside them, built by you as DIR/stencil.openmpi and so on (-h)")
	}
	return c
}

// Explain explains how to read the figures of a comparison of kernels.
func Explain(c *compare.Table) []string {
	return []string{
		"ours: " + strings.Join(append([]string{c.Ours}, c.Peers...), "; "),
		fmt.Sprintf("Medians of %s of whole jobs, with the lowest and the highest. A round goes kernel by kernel: everyone runs one before the next.", table.Plural(c.Rounds, "round")),
		"ratio: ours to the better MPI within a round, of which the median counts; rounds: the lowest and the highest. More is better.",
	}
}
