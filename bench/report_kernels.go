package main

import (
	"context"
	"fmt"
	"slices"
)

// A kernelReport is what the report has of kernels on one device.
type kernelReport struct {
	*comparison
	o     *kernelOptions
	bouts []*bout
}

// findKernels builds the kernels into dir, if they are asked for: they know no switches, and are no cases.
func (r *report) findKernels(ctx context.Context, dir string) {
	if !r.o.whole || len(r.o.devices[0].settings.thrown) > 0 {
		return
	}
	if err := buildKernels(ctx, dir, kernelNames, r.peers); err != nil {
		r.noKernels = err.Error()
		return
	}
	for _, d := range r.o.devices {
		if slices.Contains(kernelDevices, d.device) {
			o := &kernelOptions{device: d.device, rounds: r.o.rounds, ranks: 2, prk: r.o.prk, timeout: kernelTimeout, peerTimeout: kernelTimeout}
			o.choose(usualSizes(o.device), nil)
			r.addKernels(o, o.contestants(dir, r.peers))
		}
	}
}

func (r *report) addKernels(o *kernelOptions, all []contestant) {
	args := []string{kernelsCommand, "-device", o.device, "-rounds", fmt.Sprint(o.rounds)}
	if o.prk != "" {
		args = append(args, "-prk", o.prk)
	}
	k := &kernelReport{comparison: o.comparison(r.peers, nil), o: o, bouts: layOut(o.device, o.jobs(), all, o.rounds)}
	k.Command = commandLine(args)
	r.kernels = append(r.kernels, k)
}

// planKernels has a round's turns at a kernel be a step.
func (r *report) planKernels() {
	for _, k := range r.kernels {
		for round := range k.o.rounds {
			for i, b := range k.bouts {
				r.steps = append(r.steps, reportStep{
					about:   fmt.Sprintf("round %d of %d: %s, %s", round+1, k.o.rounds, k.o.kernels[i].c.name, k.o.device),
					key:     k.o.kernels[i].c.name + ", " + k.o.device,
					seconds: k.o.kernels[i].seconds * float64(len(b.turns)), run: func(ctx context.Context) error { return b.take(ctx, round) },
				})
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
		for _, text := range k.howKernels() {
			p.element("p", text)
		}
		lines, notes, _ := k.lines()
		p.table(lines)
		for _, note := range notes {
			p.element("p", note+".")
		}
		fmt.Fprintf(p, "<p><code>%s</code></p>\n", xmlText(k.Command))
	}
}
