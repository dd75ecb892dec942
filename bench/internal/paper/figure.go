package paper

import (
	"context"
	"fmt"
	"slices"

	"github.com/onesided/rma/bench/internal/cases"
	"github.com/onesided/rma/bench/internal/device"
	"github.com/onesided/rma/bench/internal/plan"
	"github.com/onesided/rma/bench/internal/runner"
	"github.com/onesided/rma/bench/internal/stats"
	"github.com/onesided/rma/bench/internal/toggles"
	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/internal/tuning"
	"github.com/onesided/rma/verbs/sim"
	"github.com/onesided/rma/world"
)

// A Figure describes a figure of a paper: what is measured, on which machine, and what the paper says of it. Nothing
// in it, nor in the profile, is chosen for the outcome.
type Figure struct {
	// part is the letter of the paper, name the figure's number in it.
	part, name string
	title      string
	// profile is the profile of the paper's machine.
	profile string
	// xs are the points at which the curves are measured: sizes in bytes, or what xLabel says.
	xs             []int
	xLabel, yLabel string
	// counted is set if xs are counts, of ranks or messages, and not sizes in bytes.
	counted bool
	// logarithmic is set if the y axis is logarithmic, as the x axis always is.
	logarithmic bool
	unit        string // of y
	// curves has the mechanism off first, then on. These are compared. Others follow.
	curves  []curve
	measure measurement
	claims  []claim
}

// A measurement returns the value of a curve at each x of a figure.
type measurement func(ctx context.Context, f *Figure, c *curve, o *Options) ([]float64, error)

// A curve is one way to run what a figure measures.
type curve struct {
	// short is the head of its column.
	short, name string
	// tuning has the switches of the job.
	tuning tuning.Tuning
	// registered: the program registers the buffers beforehand. first: the first use of a buffer counts and not the
	// best. copiesOut: the target copies what was put to its own memory.
	registered, first, copiesOut bool
	// messages says how messages of package verbs/channel go. apart: buffers share no pages. waits: a call returns
	// when its buffers belong to the program again. ranks is the number of ranks.
	messages     mode
	apart, waits bool
	ranks        int
}

// tuned returns the option for the switches of the job.
func (c *curve) tuned() world.Option { return job.Tune(func(t *tuning.Tuning) { *t = c.tuning }) }

// Name returns the name of the figure on the command line.
func (f *Figure) Name() string { return f.part + f.name }

// A Plot is a figure that has been measured.
type Plot struct {
	Part    string `json:"part"`
	Figure  string `json:"figure"`
	Title   string `json:"title"`
	Profile string `json:"profile"`
	Unit    string `json:"unit"`
	X       []int  `json:"x"`
	// Curves have a value for each of X. They are in the order of the figure's curves.
	Curves   []measuredCurve `json:"curves"`
	Verdicts []verdict       `json:"cases"`

	figure *Figure
}

// Name returns the name of the figure on the command line.
func (p *Plot) Name() string { return p.Part + p.Figure }

type measuredCurve struct {
	Short  string    `json:"curve"`
	Name   string    `json:"name"`
	Values []float64 `json:"values"`
}

// A verdict is a claim and what was measured.
type verdict struct {
	Case   string  `json:"case"`
	Theirs string  `json:"theirs"`
	Ours   float64 `json:"ours"`
	Unit   string  `json:"unit"`
	Within bool    `json:"within"`
	// Reason says why the case is within although it is beyond the paper's figure.
	Reason string `json:"reason,omitempty"`
	// Source is the place of the claim in the paper.
	Source string `json:"source"`
}

func (v *verdict) word() string {
	switch {
	case v.Theirs == "":
		return "-"
	case v.Within:
		return "within"
	}
	return "off"
}

// Reproduce measures a figure and judges it.
func (f *Figure) Reproduce(ctx context.Context, o *Options) (*Plot, error) {
	p := &Plot{Part: f.part, Figure: f.name, Title: f.title, Profile: f.profile, Unit: f.unit, X: f.xs, figure: f}
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

func (p *Plot) judge() {
	for _, c := range p.figure.claims {
		p.Verdicts = append(p.Verdicts, c.judge(c.of(p)))
	}
}

// A claim is a statement of a paper about a figure.
type claim struct {
	name   string
	theirs float64
	unit   string
	kind   claimKind
	// of returns our value for the claim.
	of func(p *Plot) float64
	// source is the section of the paper, or the number of a figure that only plots it.
	source string
	// beyond is the reason why ours may exceed theirs by more than a fifth, or for a loss fall below it. It is "" if
	// it may not.
	beyond string
}

// A claimKind is the condition for our value.
type claimKind int

const (
	// The default: equal to theirs within a fifth, or more with a reason.
	_ claimKind = iota
	// loss: the same, but less with a reason.
	loss
	// noLess: at least theirs, apart from rounding in print.
	noLess
	// noMore: at most theirs, apart from rounding in print.
	noMore
	// less: less than theirs.
	less
	// asGood: within one unit of theirs.
	asGood
	// unstated: the papers say nothing, and every value is within.
	unstated
)

func (c *claim) judge(ours float64) verdict {
	v := verdict{Case: c.name, Theirs: rounded(c.theirs), Ours: ours, Unit: c.unit, Source: c.source}
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
	case unstated:
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

// unprinted is the greatest value that rounded drops.
const unprinted = 0.05

// Improvements by the mechanism, at each x, in percent.

// gains returns the increases of throughput.
func (p *Plot) gains() []float64 {
	return p.compared(func(off, on float64) float64 { return (on/off - 1) * 100 })
}

// savings returns the saved parts of latency.
func (p *Plot) savings() []float64 {
	return p.compared(func(off, on float64) float64 { return (1 - on/off) * 100 })
}

func (p *Plot) compared(by func(off, on float64) float64) []float64 {
	compared := make([]float64, len(p.X))
	for i := range compared {
		compared[i] = by(p.Curves[0].Values[i], p.Curves[1].Values[i])
	}
	return compared
}

// improvements returns gains or savings, depending on the unit.
func (p *Plot) improvements() []float64 {
	if stats.MoreIsBetter(p.Unit) {
		return p.gains()
	}
	return p.savings()
}

// Values for claims.
func mostImproved(p *Plot) float64  { return slices.Max(p.improvements()) }
func leastImproved(p *Plot) float64 { return slices.Min(p.improvements()) }
func lastImproved(p *Plot) float64  { return p.improvements()[len(p.X)-1] }
func peak(p *Plot) float64          { return slices.Max(p.Curves[1].Values) }

// lastOverFirst returns how much greater the improvement is at the largest x than at the smallest.
func lastOverFirst(p *Plot) float64 {
	all := p.improvements()
	return all[len(all)-1] - all[0]
}

// caseAt measures a figure by a case of this benchmark, whose sizes are the figure's xs. The values of the figure are
// n times those of the case.
func caseAt(name string, n float64) measurement {
	return func(ctx context.Context, f *Figure, c *curve, o *Options) ([]float64, error) {
		card, err := sim.ByName(f.profile)
		if err != nil {
			return nil, err
		}
		j := plan.Job{Ranks: 2}
		for _, size := range f.xs {
			j.Cells = append(j.Cells, cases.Cell{Case: cases.ByName(name), Size: size})
		}
		var values []float64
		one := &runner.Options{Card: &card, Seed: o.Seed, Repeat: device.SimulatedLoops, Timeout: o.Timeout, Settings: toggles.Settings{Tuning: c.tuning}}
		err = runner.RunSimulated(ctx, one, j, func(r plan.Result) error {
			values = append(values, n*r.Value)
			return nil
		})
		return values, err
	}
}
