package report

import (
	"context"
	"fmt"
	"slices"

	"github.com/onesided/rma/bench/internal/chart"
	"github.com/onesided/rma/bench/internal/cli"
	"github.com/onesided/rma/bench/internal/compare"
	"github.com/onesided/rma/bench/internal/experiments/kernels"
	"github.com/onesided/rma/bench/internal/peers"
	"github.com/onesided/rma/bench/internal/stats"
)

// A kernelReport is the report's comparison of kernels on one device.
type kernelReport struct {
	*compare.Table
	o           *kernels.Options
	comparisons []*compare.CaseComparison
}

// findKernels builds the kernels into dir, if they are requested. They have no switches and are no cases.
func (r *report) findKernels(ctx context.Context, dir string) {
	if !r.o.whole || len(r.o.devices[0].Settings.Given) > 0 {
		return
	}
	peers, missing, err := kernels.Build(ctx, dir, kernels.Names, r.peers)
	if err != nil {
		r.noKernels = cli.Cause(err)
		return
	}
	for _, d := range r.o.devices {
		if slices.Contains(kernels.Devices, d.Device) {
			o := &kernels.Options{Device: d.Device, Rounds: r.o.rounds, Ranks: 2, Prk: r.o.prk, Timeout: kernels.Timeout, PeerTimeout: kernels.Timeout}
			o.Choose(kernels.UsualSizes(o.Device), nil)
			r.addKernels(o, peers, missing, o.Libraries(dir, peers))
		}
	}
}

func (r *report) addKernels(o *kernels.Options, peers []*peers.Peer, missing []string, all []compare.Library) {
	args := []string{cli.KernelsCommand, "-device", o.Device, "-rounds", fmt.Sprint(o.Rounds)}
	if o.Prk != "" {
		args = append(args, "-prk", o.Prk)
	}
	k := &kernelReport{Table: o.Table(peers, missing), o: o, comparisons: compare.Prepare(o.Device, o.Jobs(), all, o.Rounds)}
	k.Command = cli.CommandLine(args)
	r.kernels = append(r.kernels, k)
}

// planKernels makes each run of a kernel a step.
func (r *report) planKernels() {
	for _, k := range r.kernels {
		for round := range k.o.Rounds {
			for i, b := range k.comparisons {
				for _, e := range stats.InRound(round, b.Entries) {
					key := e.String() + ", " + k.o.Device
					r.steps = append(r.steps, step{
						about: fmt.Sprintf("round %d of %d: %s", round+1, k.o.Rounds, key), key: key,
						seconds: k.o.Kernels[i].Seconds, run: func(ctx context.Context) error { return e.Measure(ctx, round) }, late: &e.TimedOut,
					})
				}
			}
		}
	}
}

// writeKernels writes the section of the kernels.
func (r *report) writeKernels(p *page) {
	if len(r.kernels) == 0 && r.noKernels == "" {
		return
	}
	p.heading("Kernels")
	if r.noKernels != "" {
		p.element("p", "Left out: "+r.noKernels)
	}
	for _, k := range r.kernels {
		for _, text := range kernels.Explain(k.Table) {
			p.element("p", text)
		}
		lines, notes, _ := k.Lines()
		p.table(lines)
		for _, note := range notes {
			p.element("p", note+".")
		}
		fmt.Fprintf(p, "<p><code>%s</code></p>\n", chart.XMLText(k.Command))
	}
}
