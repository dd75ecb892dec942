package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/onesided/rma/bench/internal/chart"
	"github.com/onesided/rma/bench/internal/cli"
	"github.com/onesided/rma/bench/internal/stats"
)

// A kernelReport is the report's comparison of kernels on one device.
type kernelReport struct {
	*comparison
	o     *kernelOptions
	bouts []*bout
}

// findKernels builds the kernels into dir, if they are requested. They have no switches and are no cases.
func (r *report) findKernels(ctx context.Context, dir string) {
	if !r.o.whole || len(r.o.devices[0].Settings.Given) > 0 {
		return
	}
	peers, missing, err := buildKernels(ctx, dir, kernelNames, r.peers)
	if err != nil {
		r.noKernels = cli.Cause(err)
		return
	}
	for _, d := range r.o.devices {
		if slices.Contains(kernelDevices, d.Device) {
			o := &kernelOptions{device: d.Device, rounds: r.o.rounds, ranks: 2, prk: r.o.prk, timeout: kernelTimeout, peerTimeout: kernelTimeout}
			o.choose(usualSizes(o.device), nil)
			r.addKernels(o, peers, missing, o.contestants(dir, peers))
		}
	}
}

func (r *report) addKernels(o *kernelOptions, peers []*peer, missing []string, all []contestant) {
	args := []string{cli.Kernels, "-device", o.device, "-rounds", fmt.Sprint(o.rounds)}
	if o.prk != "" {
		args = append(args, "-prk", o.prk)
	}
	k := &kernelReport{comparison: o.comparison(peers, missing), o: o, bouts: layOut(o.device, o.jobs(), all, o.rounds)}
	k.Command = cli.CommandLine(args)
	r.kernels = append(r.kernels, k)
}

// planKernels makes each run of a kernel a step.
func (r *report) planKernels() {
	for _, k := range r.kernels {
		for round := range k.o.rounds {
			for i, b := range k.bouts {
				for _, t := range stats.InRound(round, b.turns) {
					key := t.spell() + ", " + k.o.device
					r.steps = append(r.steps, reportStep{
						about: fmt.Sprintf("round %d of %d: %s", round+1, k.o.rounds, key), key: key,
						seconds: k.o.kernels[i].seconds, run: func(ctx context.Context) error { return t.take(ctx, round) }, late: &t.late,
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
		for _, text := range howKernels(k.comparison) {
			p.element("p", text)
		}
		lines, notes, _ := k.lines()
		p.table(lines)
		for _, note := range notes {
			p.element("p", note+".")
		}
		fmt.Fprintf(p, "<p><code>%s</code></p>\n", chart.XMLText(k.Command))
	}
}
