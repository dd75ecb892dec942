package paper

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"

	"github.com/onesided/rma/bench/internal/chart"
)

// axes returns the axes of a plot: x over its sizes or counts, y from 0, or over its values if it is logarithmic.
func (p *Plot) axes() (x, y chart.Axis) {
	first, last := p.X[0], p.X[len(p.X)-1]
	x = chart.Axis{Low: float64(first), High: float64(last), Logarithmic: true, Format: chart.ByteUnits}
	if p.figure.counted {
		x.Format, x.Decimal = chart.PlainNumber, bits.OnesCount(uint(first)) != 1 || bits.OnesCount(uint(last)) != 1
	}
	var all []float64
	for _, c := range p.Curves {
		all = append(all, c.Values...)
	}
	if p.figure.logarithmic {
		y = chart.DecimalAxis(slices.Min(all), slices.Max(all))
	} else {
		step := chart.NiceStep(slices.Max(all))
		y.High = math.Ceil(slices.Max(all)/step) * step
	}
	y.Format = chart.PlainNumber
	return x, y
}

// SVG draws the figure as in the paper: the curves over size, off and on. A curve's name ends with its name in the
// cases.
func (p *Plot) SVG() string {
	c := &chart.Chart{
		Title: fmt.Sprintf("Part %s, figure %s: %s", p.Part, p.Figure, p.Title), Note: "profile " + p.Profile + ", in virtual time",
		XLabel: p.figure.xLabel, YLabel: p.figure.yLabel,
	}
	if !p.figure.counted {
		c.XLabel = strings.Replace(c.XLabel, "bytes", "size", 1)
	}
	c.X, c.Y = p.axes()
	for _, measured := range p.Curves {
		curve := chart.Curve{Name: fmt.Sprintf("%s (%s)", measured.Name, measured.Short)}
		for k, v := range measured.Values {
			curve.Points = append(curve.Points, chart.Point{X: float64(p.X[k]), Y: v})
		}
		c.Curves = append(c.Curves, curve)
	}
	for _, v := range p.Verdicts {
		text := fmt.Sprintf("%s: paper %s %s (%s), here %s %s: %s", v.Case, v.Theirs, v.Unit, v.Source, rounded(v.Ours), v.Unit, v.word())
		if v.Theirs == "" {
			text = fmt.Sprintf("%s: %s %s", v.Case, rounded(v.Ours), v.Unit)
		}
		c.Below = append(c.Below, text)
	}
	return c.SVG()
}
