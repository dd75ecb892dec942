package main

import (
	"fmt"
	"math"
	"slices"
)

// axes are those of a plot: x over its sizes, y from 0, or over what is there if it is
// logarithmic.
func (p *plot) axes() (x, y svgAxis) {
	x = svgAxis{low: float64(p.X[0]), high: float64(p.X[len(p.X)-1]), from: drawnLeft, to: drawnRight, logarithmic: true, says: bySize}
	var all []float64
	for _, c := range p.Curves {
		all = append(all, c.Values...)
	}
	y = svgAxis{high: slices.Max(all), from: drawnBottom, to: drawnTop, logarithmic: p.figure.logarithmic, says: plainNumber}
	if y.logarithmic {
		y.low = math.Exp2(math.Floor(math.Log2(slices.Min(all))))
		y.high = math.Exp2(math.Ceil(math.Log2(y.high)))
		return x, y
	}
	step := niceStep(y.high)
	y.high = math.Ceil(y.high/step) * step
	return x, y
}

// svg draws the figure as the paper has it: the curves over size, off and on. The legend is in
// the upper left, where curves that rise with size leave room.
func (p *plot) svg() string {
	c := &chart{
		title: fmt.Sprintf("Part %s, figure %s: %s", p.Part, p.Figure, p.Title), note: "profile " + p.Profile + ", in virtual time",
		xLabel: p.figure.xLabel, yLabel: p.figure.yLabel,
	}
	c.x, c.y = p.axes()
	for _, measured := range p.Curves {
		curve := chartCurve{name: measured.Name}
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

// bySize is a size in bytes, K or M.
func bySize(v float64) string {
	switch {
	case v >= 1<<20:
		return fmt.Sprintf("%gM", v/(1<<20))
	case v >= 1<<10:
		return fmt.Sprintf("%gK", v/(1<<10))
	}
	return fmt.Sprintf("%g", v)
}
