package main

import (
	"encoding/xml"
	"fmt"
	"math"
	"slices"
	"strings"
)

// The drawing of a figure, in the units of SVG.
const (
	drawnWidth = 720
	// The axes enclose these.
	drawnLeft, drawnRight = 76, 700
	drawnTop, drawnBottom = 56, 400
	// What is said of the figure is below, a line for each case.
	drawnCases, drawnLine = drawnBottom + 66, 16
)

// curveLooks are those of the curves, told apart without colour, too: off is dashed.
var curveLooks = []struct{ colour, dash string }{{"#b5541c", "7 4"}, {"#1f5fa8", "none"}, {"#2e7d4f", "2 3"}, {"#7a4b94", "10 3 2 3"}, {"#8a6d00", "5 2"}, {"#444444", "12 4"}}

// An svgAxis maps values to places, from low, which is at from, to high, which is at to.
type svgAxis struct {
	low, high, from, to float64
	logarithmic         bool
}

func (a svgAxis) at(v float64) float64 {
	low, high := a.low, a.high
	if a.logarithmic {
		v, low, high = math.Log2(v), math.Log2(low), math.Log2(high)
	}
	return a.from + (v-low)/(high-low)*(a.to-a.from)
}

// ticks are the values that the axis has marks at.
func (a svgAxis) ticks() []float64 {
	var ticks []float64
	if a.logarithmic {
		factor := 2.0
		for math.Log2(a.high/a.low)/math.Log2(factor) > 11 {
			factor *= 2
		}
		for v := a.low; v <= a.high*1.0001; v *= factor {
			ticks = append(ticks, v)
		}
		return ticks
	}
	step := niceStep(a.high - a.low)
	for v := a.low; v <= a.high+step/1000; v += step {
		ticks = append(ticks, v)
	}
	return ticks
}

// niceStep is 1, 2 or 5 times a power of ten, of which about six make the extent.
func niceStep(extent float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(extent/6)))
	for _, times := range []float64{1, 2, 5} {
		if extent/(times*power) <= 7.5 {
			return times * power
		}
	}
	return 10 * power
}

// axes are those of a plot: x over its sizes, y from 0, or over what is there if it is
// logarithmic.
func (p *plot) axes() (x, y svgAxis) {
	x = svgAxis{low: float64(p.X[0]), high: float64(p.X[len(p.X)-1]), from: drawnLeft, to: drawnRight, logarithmic: true}
	var all []float64
	for _, c := range p.Curves {
		all = append(all, c.Values...)
	}
	y = svgAxis{high: slices.Max(all), from: drawnBottom, to: drawnTop, logarithmic: p.figure.logarithmic}
	if y.logarithmic {
		y.low = math.Exp2(math.Floor(math.Log2(slices.Min(all))))
		y.high = math.Exp2(math.Ceil(math.Log2(y.high)))
		return x, y
	}
	step := niceStep(y.high)
	y.high = math.Ceil(y.high/step) * step
	return x, y
}

// svg draws the figure as the paper has it: the curves over size, off and on.
func (p *plot) svg() string {
	var b strings.Builder
	height := drawnCases + drawnLine*len(p.Verdicts)
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n",
		drawnWidth, height, drawnWidth, height)
	title := fmt.Sprintf("Part %s, figure %s: %s", p.Part, p.Figure, p.Title)
	fmt.Fprintf(&b, "<title>%s</title>\n", xmlText(title))
	b.WriteString(`<rect width="100%" height="100%" fill="white"/>` + "\n")
	svgText(&b, drawnLeft, 22, `font-size="15" font-weight="bold"`, title)
	svgText(&b, drawnLeft, 42, `fill="#555"`, "profile "+p.Profile+", in virtual time")
	x, y := p.axes()
	p.drawAxes(&b, x, y)
	for i, c := range p.Curves {
		p.drawCurve(&b, i, c, x, y)
	}
	p.drawLegend(&b)
	for i, v := range p.Verdicts {
		text := fmt.Sprintf("%s: paper %s %s (%s), here %s %s: %s", v.Case, v.Theirs, v.Unit, v.Source, rounded(v.Ours), v.Unit, v.word())
		if v.Theirs == "" {
			text = fmt.Sprintf("%s: %s %s", v.Case, rounded(v.Ours), v.Unit)
		}
		svgText(&b, drawnLeft, float64(drawnCases+drawnLine*i), `fill="#333"`, text)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func (p *plot) drawAxes(b *strings.Builder, x, y svgAxis) {
	for _, v := range y.ticks() {
		at := y.at(v)
		fmt.Fprintf(b, `<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="#ddd"/>`+"\n", drawnLeft, at, drawnRight, at)
		svgText(b, drawnLeft-8, at+4, `text-anchor="end"`, fmt.Sprintf("%.6g", v))
	}
	for _, v := range x.ticks() {
		at := x.at(v)
		fmt.Fprintf(b, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#333"/>`+"\n", at, drawnBottom, at, drawnBottom+5)
		svgText(b, at, drawnBottom+19, `text-anchor="middle"`, bySize(v))
	}
	fmt.Fprintf(b, `<rect x="%d" y="%d" width="%d" height="%d" fill="none" stroke="#333"/>`+"\n", drawnLeft, drawnTop, drawnRight-drawnLeft, drawnBottom-drawnTop)
	svgText(b, (drawnLeft+drawnRight)/2, drawnBottom+40, `text-anchor="middle"`, p.figure.xLabel)
	middle := (drawnTop + drawnBottom) / 2
	svgText(b, 18, float64(middle), fmt.Sprintf(`text-anchor="middle" transform="rotate(-90 18 %d)"`, middle), p.figure.yLabel)
}

func (p *plot) drawCurve(b *strings.Builder, i int, c measuredCurve, x, y svgAxis) {
	look := curveLooks[i%len(curveLooks)]
	var points []string
	for k, v := range c.Values {
		points = append(points, fmt.Sprintf("%.1f,%.1f", x.at(float64(p.X[k])), y.at(v)))
	}
	fmt.Fprintf(b, `<polyline fill="none" stroke="%s" stroke-width="2" stroke-dasharray="%s" points="%s"/>`+"\n", look.colour, look.dash, strings.Join(points, " "))
	for k, v := range c.Values {
		svgMark(b, i, x.at(float64(p.X[k])), y.at(v))
	}
}

// svgMark marks a value of a curve, each by its own shape.
func svgMark(b *strings.Builder, curve int, x, y float64) {
	colour := curveLooks[curve%len(curveLooks)].colour
	if curve%2 == 0 {
		fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="6" height="6" fill="%s"/>`+"\n", x-3, y-3, colour)
		return
	}
	fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="3.5" fill="%s"/>`+"\n", x, y, colour)
}

// drawLegend is in the upper left, where curves that rise with size leave room.
func (p *plot) drawLegend(b *strings.Builder) {
	for i, c := range p.Curves {
		at, look := float64(drawnTop+20+18*i), curveLooks[i%len(curveLooks)]
		fmt.Fprintf(b, `<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="%s" stroke-width="2" stroke-dasharray="%s"/>`+"\n", drawnLeft+14, at, drawnLeft+50, at, look.colour, look.dash)
		svgMark(b, i, drawnLeft+32, at)
		svgText(b, drawnLeft+58, at+4, "", c.Name)
	}
}

// svgText writes text at a place, with attributes.
func svgText(b *strings.Builder, x, y float64, attributes, text string) {
	if attributes != "" {
		attributes = " " + attributes
	}
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f"%s>%s</text>`+"\n", x, y, attributes, xmlText(text))
}

func xmlText(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a Builder takes all
	return b.String()
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
