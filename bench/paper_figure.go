package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/onesided/rma/verbs/sim"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// A figure is one of a paper's, as data: what is measured, on which machine, and what the
// paper says of it. Nothing in it, nor in the profile, is chosen for the outcome.
type figure struct {
	// part is the letter of the paper, name the figure's number in it.
	part, name string
	title      string
	// profile is that of the paper's machine.
	profile string
	// xs are where the curves are measured: sizes in bytes, or what xLabel says.
	xs             []int
	xLabel, yLabel string
	// counted: xs are counts, of ranks or messages, not sizes in bytes.
	counted bool
	// logarithmic: the y axis is logarithmic, as the x axis always is.
	logarithmic bool
	unit        string // of y
	// curves are the mechanism off first, then on, which are compared, then others.
	curves  []curve
	measure measurement
	claims  []claim
}

// A measurement gives the value of a curve at each x of a figure.
type measurement func(ctx context.Context, f *figure, c *curve, o *paperOptions) ([]float64, error)

// A curve is one way to run what a figure measures.
type curve struct {
	// short is the head of its column.
	short, name string
	// options are the windows', joins the Worlds'.
	options []window.Option
	joins   []world.Option
	// registered tells that the program registers the buffers beforehand, first that the first use of
	// a buffer counts and not the best, copiesOut that who is written to copies it to its own memory.
	registered, first, copiesOut bool
	// messages are how messages of package verbs/channel go. apart tells that buffers share no pages, waits
	// that a call ends when its buffers are the program's again. ranks is how many there are.
	messages     mode
	apart, waits bool
	ranks        int
}

// id is the figure as the command line names it.
func (f *figure) id() string { return f.part + f.name }

// A plot is a figure that has been measured.
type plot struct {
	Part    string `json:"part"`
	Figure  string `json:"figure"`
	Title   string `json:"title"`
	Profile string `json:"profile"`
	Unit    string `json:"unit"`
	X       []int  `json:"x"`
	// Curves have a value for each of X. They are in the order of the figure's.
	Curves   []measuredCurve `json:"curves"`
	Verdicts []paperVerdict  `json:"cases"`

	figure *figure
}

type measuredCurve struct {
	Short  string    `json:"curve"`
	Name   string    `json:"name"`
	Values []float64 `json:"values"`
}

// A paperVerdict is a claim and what was measured.
type paperVerdict struct {
	Case   string  `json:"case"`
	Theirs string  `json:"theirs"`
	Ours   float64 `json:"ours"`
	Unit   string  `json:"unit"`
	Within bool    `json:"within"`
	// Reason is why it is within although it is beyond the paper's figure.
	Reason string `json:"reason,omitempty"`
	// Source is where the paper says so.
	Source string `json:"source"`
}

func (v *paperVerdict) word() string {
	switch {
	case v.Theirs == "":
		return "-"
	case v.Within:
		return "within"
	}
	return "off"
}

// reproduce measures a figure and judges it.
func (f *figure) reproduce(ctx context.Context, o *paperOptions) (*plot, error) {
	p := &plot{Part: f.part, Figure: f.name, Title: f.title, Profile: f.profile, Unit: f.unit, X: f.xs, figure: f}
	for i := range f.curves {
		c := &f.curves[i]
		values, err := f.measure(ctx, f, c, o)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		p.Curves = append(p.Curves, measuredCurve{c.short, c.name, values})
	}
	p.judge()
	return p, nil
}

func (p *plot) judge() {
	for _, c := range p.figure.claims {
		p.Verdicts = append(p.Verdicts, c.judge(c.of(p)))
	}
}

// A claim is something that a paper says of a figure.
type claim struct {
	name   string
	theirs float64
	unit   string
	kind   claimKind
	// of is the same of a plot of ours.
	of func(p *plot) float64
	// source is the section of the paper, or the figure's number where it is plotted only.
	source string
	// beyond is why ours may be more than theirs by more than a fifth, or less if it is a loss, ""
	// if it may not.
	beyond string
}

// A claimKind is what ours has to be.
type claimKind int

const (
	// The first, of those that do not say: theirs, or within a fifth of it, or more for a reason.
	_ claimKind = iota
	// loss: the same, but less for a reason.
	loss
	// noLess: theirs or more, but for what is rounded away in print.
	noLess
	// noMore: theirs or less, but for the same.
	noMore
	// less: not as much as theirs.
	less
	// asGood: within one, in the unit, of theirs.
	asGood
	// untold: the papers tell nothing of it, and it is within whatever it is.
	untold
)

func (c *claim) judge(ours float64) paperVerdict {
	v := paperVerdict{Case: c.name, Theirs: rounded(c.theirs), Ours: ours, Unit: c.unit, Source: c.source}
	switch c.kind {
	case noLess:
		v.Theirs = ">=" + v.Theirs
		v.Within = ours >= c.theirs-unprinted
	case noMore:
		v.Theirs = "<=" + v.Theirs
		v.Within = ours <= c.theirs+unprinted
	case less:
		v.Theirs = "<" + v.Theirs
		v.Within = ours < c.theirs
	case untold:
		v.Theirs, v.Within = "", true
	case asGood:
		v.Within = ours >= c.theirs-1 && ours <= c.theirs+1
	default:
		const fifth = 0.2
		v.Within = ours >= c.theirs*(1-fifth) && ours <= c.theirs*(1+fifth)
		if c.beyond != "" && (c.kind == loss && ours < c.theirs*(1-fifth) || c.kind != loss && ours > c.theirs*(1+fifth)) {
			v.Within, v.Reason = true, c.beyond
		}
	}
	return v
}

// unprinted is what rounded drops.
const unprinted = 0.05

// Improvements of the mechanism over its absence, at each x, in percent.

// gains are of throughput: how much more it is.
func (p *plot) gains() []float64 {
	return p.compared(func(off, on float64) float64 { return (on/off - 1) * 100 })
}

// savings are of latency: which part of it is saved.
func (p *plot) savings() []float64 {
	return p.compared(func(off, on float64) float64 { return (1 - on/off) * 100 })
}

func (p *plot) compared(by func(off, on float64) float64) []float64 {
	compared := make([]float64, len(p.X))
	for i := range compared {
		compared[i] = by(p.Curves[0].Values[i], p.Curves[1].Values[i])
	}
	return compared
}

// improvements are gains or savings, by the unit.
func (p *plot) improvements() []float64 {
	if moreIsBetter(p.Unit) {
		return p.gains()
	}
	return p.savings()
}

// What claims are of.
func mostImproved(p *plot) float64  { return slices.Max(p.improvements()) }
func leastImproved(p *plot) float64 { return slices.Min(p.improvements()) }
func lastImproved(p *plot) float64  { return p.improvements()[len(p.X)-1] }
func peak(p *plot) float64          { return slices.Max(p.Curves[1].Values) }

// lastOverFirst is how much more is improved at the largest x than at the smallest.
func lastOverFirst(p *plot) float64 {
	all := p.improvements()
	return all[len(all)-1] - all[0]
}

// caseAt measures a figure by a case of this benchmark, whose sizes are the figure's xs.
// The figure has n times its values.
func caseAt(name string, n float64) measurement {
	return func(ctx context.Context, f *figure, c *curve, o *paperOptions) ([]float64, error) {
		card, err := sim.ByName(f.profile)
		if err != nil {
			return nil, err
		}
		j := launch{ranks: 2}
		for _, size := range f.xs {
			j.cells = append(j.cells, cell{caseNamed(name), size})
		}
		var values []float64
		one := &options{card: &card, seed: o.seed, repeat: simulatedLoops, timeout: o.timeout, settings: settings{options: c.options}}
		err = runSimulated(ctx, one, j, func(r result) error {
			values = append(values, n*r.Value)
			return nil
		})
		return values, err
	}
}
