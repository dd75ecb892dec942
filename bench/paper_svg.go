package main

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
)

// axes returns the axes of a plot: x over its sizes or counts, y from 0, or over its values if it is logarithmic.
func (p *plot) axes() (x, y svgAxis) {
	first, last := p.X[0], p.X[len(p.X)-1]
	x = svgAxis{low: float64(first), high: float64(last), logarithmic: true, says: byteUnits}
	if p.figure.counted {
		x.says, x.decimal = plainNumber, bits.OnesCount(uint(first)) != 1 || bits.OnesCount(uint(last)) != 1
	}
	var all []float64
	for _, c := range p.Curves {
		all = append(all, c.Values...)
	}
	if p.figure.logarithmic {
		y = decimalAxis(slices.Min(all), slices.Max(all))
	} else {
		step := niceStep(slices.Max(all))
		y.high = math.Ceil(slices.Max(all)/step) * step
	}
	y.says = plainNumber
	return x, y
}

// svg draws the figure as in the paper: the curves over size, off and on. A curve's name ends with its name in the
// cases.
func (p *plot) svg() string {
	c := &chart{
		title: fmt.Sprintf("Part %s, figure %s: %s", p.Part, p.Figure, p.Title), note: "profile " + p.Profile + ", in virtual time",
		xLabel: p.figure.xLabel, yLabel: p.figure.yLabel,
	}
	if !p.figure.counted {
		c.xLabel = strings.Replace(c.xLabel, "bytes", "size", 1)
	}
	c.x, c.y = p.axes()
	for _, measured := range p.Curves {
		curve := chartCurve{name: fmt.Sprintf("%s (%s)", measured.Name, measured.Short)}
		for k, v := range measured.Values {
			curve.points = append(curve.points, chartPoint{x: float64(p.X[k]), y: v})
		}
		c.curves = append(c.curves, curve)
	}
	for _, v := range p.Verdicts {
		text := fmt.Sprintf("%s: paper %s %s (%s), here %s %s: %s", v.Case, v.Theirs, v.Unit, v.Source, rounded(v.Ours), v.Unit, v.word())
		if v.Theirs == "" {
			text = fmt.Sprintf("%s: %s %s", v.Case, rounded(v.Ours), v.Unit)
		}
		c.below = append(c.below, text)
	}
	return c.svg()
}
