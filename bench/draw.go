package main

import (
	"encoding/xml"
	"fmt"
	"math"
	"slices"
	"strings"
)

// The drawing of a chart, in the units of SVG.
const (
	drawnWidth = 720
	// The axes enclose these.
	drawnLeft, drawnRight = 76, 700
	drawnTop, drawnBottom = 56, 400
	// What is said of the chart is below, line by line.
	drawnCases, drawnLine = drawnBottom + 66, 16
)

// curveLooks are those of the curves, told apart without colour, too: off is dashed.
var curveLooks = []struct{ colour, dash string }{{"#b5541c", "7 4"}, {"#1f5fa8", "none"}, {"#2e7d4f", "2 3"}, {"#7a4b94", "10 3 2 3"}, {"#8a6d00", "5 2"}, {"#444444", "12 4"}}

// A chart is curves over two axes, as it is drawn.
type chart struct {
	title, note    string
	xLabel, yLabel string
	x, y           svgAxis
	curves         []chartCurve
	// keyBelow has the legend below the axes, for curves that leave no room in the upper left.
	keyBelow bool
	below    []string
}

type chartCurve struct {
	name   string
	points []chartPoint
	// bare has no marks at the points, of which there are too many.
	bare bool
	// apart are points that no line connects, each with its extent as a line.
	apart bool
}

// A chartPoint is a value, the extent of those that it is the middle of, and what is told where
// a pointer is over it.
type chartPoint struct {
	x, y      float64
	low, high float64 // both 0: there is no extent
	hover     string
}

// An svgAxis maps values to places, from low, which is at from, to high, which is at to.
type svgAxis struct {
	low, high, from, to float64
	logarithmic         bool
	// decimal has the marks of a logarithmic axis at powers of ten, not of two.
	decimal bool
	// marks are where the axis has them, nil to let it choose; says is what it writes there.
	marks []float64
	says  func(float64) string
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
	switch {
	case a.marks != nil:
		return a.marks
	case a.logarithmic && a.decimal:
		return a.decimalTicks()
	case a.logarithmic:
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

// decimalTicks are powers of ten, and if there are few of them their double and fivefold.
func (a svgAxis) decimalTicks() []float64 {
	times := []float64{1}
	if a.high/a.low < 2000 {
		times = []float64{1, 2, 5}
	}
	var ticks []float64
	for power := math.Floor(math.Log10(a.low)); power <= math.Log10(a.high)+1e-9; power++ {
		for _, t := range times {
			if v := t * math.Pow(10, power); v >= a.low*0.9999 && v <= a.high*1.0001 {
				ticks = append(ticks, v)
			}
		}
	}
	return ticks
}

// decimalAxis is the logarithmic one that low to high, both above 0, are on, from one of 1, 2 and 5
// times a power of ten to another.
func decimalAxis(low, high, from, to float64) svgAxis {
	a := svgAxis{from: from, to: to, logarithmic: true, decimal: true}
	a.low = math.Pow(10, math.Floor(math.Log10(low)))
	for _, t := range []float64{5, 2} {
		if t*a.low <= low {
			a.low *= t
			break
		}
	}
	top := math.Pow(10, math.Floor(math.Log10(high)))
	for _, t := range []float64{1, 2, 5, 10} {
		if a.high = t * top; a.high >= high && a.high > a.low {
			break
		}
	}
	return a
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

// svg draws the chart.
func (c *chart) svg() string {
	var b strings.Builder
	lines := len(c.below)
	if c.keyBelow {
		lines += len(c.curves) + 1
	}
	height := drawnCases + drawnLine*lines
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n",
		drawnWidth, height, drawnWidth, height)
	fmt.Fprintf(&b, "<title>%s</title>\n", xmlText(c.title))
	b.WriteString(`<rect width="100%" height="100%" fill="white"/>` + "\n")
	svgText(&b, drawnLeft, 22, `font-size="15" font-weight="bold"`, c.title)
	svgText(&b, drawnLeft, 42, `fill="#555"`, c.note)
	c.drawAxes(&b)
	for i, curve := range c.curves {
		if curve.apart {
			c.drawBars(&b, i, curve)
		} else {
			c.drawExtent(&b, i, curve)
		}
	}
	for i, curve := range c.curves {
		c.drawCurve(&b, i, curve)
	}
	at := float64(drawnTop + 20)
	step, below := 18.0, drawnCases
	if c.keyBelow {
		at, step, below = drawnCases, drawnLine, drawnCases+drawnLine*len(c.curves)+drawnLine/2
	}
	for i, curve := range c.curves {
		drawKey(&b, i, curve.name, at+step*float64(i))
	}
	for i, text := range c.below {
		svgText(&b, drawnLeft, float64(below+drawnLine*i), `fill="#333"`, text)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func (c *chart) drawAxes(b *strings.Builder) {
	for _, v := range c.y.ticks() {
		at := c.y.at(v)
		fmt.Fprintf(b, `<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="#ddd"/>`+"\n", drawnLeft, at, drawnRight, at)
		svgText(b, drawnLeft-8, at+4, `text-anchor="end"`, c.y.says(v))
	}
	for _, v := range c.x.ticks() {
		at := c.x.at(v)
		fmt.Fprintf(b, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#333"/>`+"\n", at, drawnBottom, at, drawnBottom+5)
		svgText(b, at, drawnBottom+19, `text-anchor="middle"`, c.x.says(v))
	}
	fmt.Fprintf(b, `<rect x="%d" y="%d" width="%d" height="%d" fill="none" stroke="#333"/>`+"\n", drawnLeft, drawnTop, drawnRight-drawnLeft, drawnBottom-drawnTop)
	svgText(b, (drawnLeft+drawnRight)/2, drawnBottom+40, `text-anchor="middle"`, c.xLabel)
	middle := (drawnTop + drawnBottom) / 2
	svgText(b, 18, float64(middle), fmt.Sprintf(`text-anchor="middle" transform="rotate(-90 18 %d)"`, middle), c.yLabel)
}

// drawExtent draws the band that the values of a curve are the middle of.
func (c *chart) drawExtent(b *strings.Builder, i int, curve chartCurve) {
	var there, back []string
	for _, p := range curve.points {
		if p.low == 0 && p.high == 0 {
			continue
		}
		there = append(there, fmt.Sprintf("%.1f,%.1f", c.x.at(p.x), c.y.at(p.high)))
		back = append(back, fmt.Sprintf("%.1f,%.1f", c.x.at(p.x), c.y.at(p.low)))
	}
	slices.Reverse(back)
	if len(there) > 1 {
		fmt.Fprintf(b, `<polygon fill="%s" fill-opacity="0.18" stroke="none" points="%s"/>`+"\n", curveLooks[i%len(curveLooks)].colour, strings.Join(append(there, back...), " "))
	}
}

// drawBars draws the extent of each point of a curve by itself.
func (c *chart) drawBars(b *strings.Builder, i int, curve chartCurve) {
	for _, p := range curve.points {
		at := c.x.at(p.x)
		fmt.Fprintf(b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-width="1.5"/>`+"\n", at, c.y.at(p.low), at, c.y.at(p.high), curveLooks[i%len(curveLooks)].colour)
	}
}

func (c *chart) drawCurve(b *strings.Builder, i int, curve chartCurve) {
	look := curveLooks[i%len(curveLooks)]
	if !curve.apart {
		var points []string
		for _, p := range curve.points {
			points = append(points, fmt.Sprintf("%.1f,%.1f", c.x.at(p.x), c.y.at(p.y)))
		}
		fmt.Fprintf(b, `<polyline fill="none" stroke="%s" stroke-width="2" stroke-dasharray="%s" points="%s"/>`+"\n", look.colour, look.dash, strings.Join(points, " "))
	}
	if curve.bare {
		return
	}
	for _, p := range curve.points {
		svgMark(b, i, c.x.at(p.x), c.y.at(p.y), p.hover)
	}
}

// svgMark marks a value of a curve, each by its own shape.
func svgMark(b *strings.Builder, curve int, x, y float64, hover string) {
	name, place := "circle", fmt.Sprintf(`cx="%.1f" cy="%.1f" r="3.5"`, x, y)
	if curve%2 == 0 {
		name, place = "rect", fmt.Sprintf(`x="%.1f" y="%.1f" width="6" height="6"`, x-3, y-3)
	}
	colour := curveLooks[curve%len(curveLooks)].colour
	if hover == "" {
		fmt.Fprintf(b, `<%s %s fill="%s"/>`+"\n", name, place, colour)
		return
	}
	fmt.Fprintf(b, `<%s %s fill="%s"><title>%s</title></%s>`+"\n", name, place, colour, xmlText(hover), name)
}

// drawKey is a line of the legend.
func drawKey(b *strings.Builder, curve int, name string, at float64) {
	look := curveLooks[curve%len(curveLooks)]
	fmt.Fprintf(b, `<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="%s" stroke-width="2" stroke-dasharray="%s"/>`+"\n", drawnLeft+14, at, drawnLeft+50, at, look.colour, look.dash)
	svgMark(b, curve, drawnLeft+32, at, "")
	svgText(b, drawnLeft+58, at+4, "", name)
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

// plainNumber is a value on an axis.
func plainNumber(v float64) string { return fmt.Sprintf("%.6g", v) }
