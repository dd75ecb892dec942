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
	drawnWidth, drawnMargin = 720, 8
	// The axes are between drawnLeft and drawnRight, and drawnHeight high.
	drawnLeft, drawnRight, drawnHeight = 76, 680, 344
	titleSize, textSize                = 15, 12
	// lineHeight is the distance of lines of text.
	lineHeight = 16
	// mostMarks is the most points that a curve has marks at: more would hide it.
	mostMarks = 40
	// mostTicks is the most that an axis has.
	mostTicks = 12
)

// curveLooks are those of the curves, told apart without colour, too: off is dashed.
var curveLooks = []struct{ colour, dash string }{{"#b5541c", "7 4"}, {"#1f5fa8", "none"}, {"#2e7d4f", "2 3"}, {"#7a4b94", "10 3 2 3"}, {"#8a6d00", "5 2"}, {"#444444", "12 4"}}

// lookOf is the colour and the dashes of the curve of an index. Those of the first 36 curves differ.
func lookOf(curve int) (colour, dash string) {
	n := len(curveLooks)
	return curveLooks[curve%n].colour, curveLooks[(curve+curve/n)%n].dash
}

// A chart is curves over two axes, as it is drawn. All texts are outside of the axes, where no curve is.
type chart struct {
	title, note    string
	xLabel, yLabel string
	x, y           svgAxis
	curves         []chartCurve
	below          []string
}

type chartCurve struct {
	name   string
	points []chartPoint
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

// An svgAxis maps values to places.
type svgAxis struct {
	low, high   float64
	logarithmic bool
	// decimal has the marks of a logarithmic axis at powers of ten, not of two.
	decimal bool
	// marks are where the axis has them, nil to let it choose; says is what it writes there.
	marks []float64
	says  func(float64) string

	// from is the place of low, to that of high, and extent how much of the axis a text covers. chart.place sets them.
	from, to float64
	extent   func(text string) float64
}

// at is the place of v, which is at an end of the axis if it is beyond.
func (a svgAxis) at(v float64) float64 {
	low, high := a.low, a.high
	v = min(max(v, low), high)
	if a.logarithmic {
		v, low, high = math.Log2(v), math.Log2(low), math.Log2(high)
	}
	return a.from + (v-low)/(high-low)*(a.to-a.from)
}

// ticks are the values that the axis has marks at.
func (a svgAxis) ticks() []float64 {
	switch {
	case a.marks != nil:
		return a.marks
	case !a.logarithmic:
		return a.most(a.linearTicks)
	case !a.decimal:
		return a.withEnds(a.most(a.binaryTicks))
	}
	if ticks := a.most(a.decimalTicks); len(ticks) > 1 {
		return ticks
	}
	return a.most(a.linearTicks)
}

// most are the first ticks that there is room for, of ever fewer.
func (a svgAxis) most(ticks func(fewer int) []float64) []float64 {
	for fewer := 0; ; fewer++ {
		if some := ticks(fewer); len(some) < 2 || a.hasRoom(some) {
			return some
		}
	}
}

// hasRoom reports whether the texts of ticks are apart.
func (a svgAxis) hasRoom(ticks []float64) bool {
	for i, v := range ticks[1:] {
		if math.Abs(a.at(v)-a.at(ticks[i])) < (a.extent(a.says(v))+a.extent(a.says(ticks[i])))/2 {
			return false
		}
	}
	return len(ticks) <= mostTicks
}

// withEnds are ticks and the ends of the axis, as far as there is room, if they are round or ticks are few.
func (a svgAxis) withEnds(ticks []float64) []float64 {
	if len(ticks) == 0 {
		ticks = []float64{a.low}
	}
	wanted := func(v float64) bool { return len(ticks) < 2 || !strings.Contains(a.says(v), ".") }
	if more := slices.Concat([]float64{a.low}, ticks); wanted(a.low) && a.hasRoom(more) {
		ticks = more
	}
	if more := slices.Concat(ticks, []float64{a.high}); wanted(a.high) && a.hasRoom(more) {
		ticks = more
	}
	return ticks
}

// binaryTicks are powers of two, or of a power of two.
func (a svgAxis) binaryTicks(fewer int) []float64 {
	var ticks []float64
	step := float64(fewer + 1)
	for power := step * math.Ceil(math.Log2(a.low)/step); power <= math.Log2(a.high); power += step {
		ticks = append(ticks, math.Exp2(power))
	}
	return ticks
}

// decimalTicks are powers of ten with their double and fivefold, or without, or of a power of ten.
func (a svgAxis) decimalTicks(fewer int) []float64 {
	times, step := []float64{1}, float64(max(fewer, 1))
	if fewer == 0 {
		times = []float64{1, 2, 5}
	}
	var ticks []float64
	for power := step * math.Floor(math.Log10(a.low)/step); power <= math.Log10(a.high)+1e-9; power += step {
		for _, t := range times {
			if v := t * math.Pow(10, power); v >= a.low*0.9999 && v <= a.high*1.0001 {
				ticks = append(ticks, v)
			}
		}
	}
	return ticks
}

// linearTicks are multiples of a step.
func (a svgAxis) linearTicks(fewer int) []float64 {
	var ticks []float64
	step := niceStep((a.high - a.low) * math.Exp2(float64(fewer)))
	for n := math.Ceil(a.low / step); n*step <= a.high+step/1000; n++ {
		ticks = append(ticks, n*step)
	}
	return ticks
}

// decimalAxis is the logarithmic one that low to high, both above 0, are on, from one of 1, 2 and 5
// times a power of ten to another.
func decimalAxis(low, high float64) svgAxis {
	a := svgAxis{logarithmic: true, decimal: true}
	a.low = math.Pow(10, math.Floor(math.Log10(low)))
	for _, t := range []float64{5, 2} {
		if t*a.low <= low {
			a.low *= t
			break
		}
	}
	top := math.Pow(10, math.Floor(math.Log10(high)))
	for _, t := range []float64{1, 2, 5, 10, 20} {
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

// place has the axes below top.
func (c *chart) place(top float64) {
	c.x.from, c.x.to = drawnLeft, drawnRight
	c.x.extent = func(text string) float64 { return textWidth(text, textSize) + drawnMargin }
	c.y.from, c.y.to = top+drawnHeight, top
	c.y.extent = func(string) float64 { return lineHeight }
}

// A drawing is the elements of a chart as they are added from the top, and how far down they reach.
type drawing struct {
	strings.Builder
	bottom float64
}

// svg draws the chart.
func (c *chart) svg() string {
	d := new(drawing)
	d.bottom = drawnMargin
	d.lines(drawnLeft, titleSize, `font-weight="bold"`, c.title)
	d.bottom += 3
	d.lines(drawnLeft, textSize, `fill="#555"`, c.note)
	d.bottom += 4
	d.lines(drawnMargin, textSize, "", c.yLabel)
	c.place(d.bottom + lineHeight)
	c.drawAxes(d)
	d.WriteString(`<g class="curves">` + "\n")
	for i := range c.curves {
		c.drawExtents(d, i)
	}
	for i := range c.curves {
		c.drawCurve(d, i)
	}
	d.WriteString("</g>\n" + `<g class="legend">` + "\n")
	for i := range c.curves {
		c.drawKey(d, i)
	}
	d.WriteString("</g>\n")
	d.bottom += lineHeight / 2
	for _, text := range c.below {
		d.lines(drawnLeft, textSize, `fill="#333"`, text)
	}
	height := math.Ceil(d.bottom) + drawnMargin
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%g" viewBox="0 0 %d %g" font-family="sans-serif" font-size="%d">
<title>%s</title>
<rect width="100%%" height="100%%" fill="white"/>
%s</svg>
`, drawnWidth, height, drawnWidth, height, textSize, xmlText(c.title), d.String())
}

func (c *chart) drawAxes(d *drawing) {
	top, bottom := c.y.to, c.y.from
	d.WriteString(`<g class="y" text-anchor="end">` + "\n")
	for _, v := range c.y.ticks() {
		at := c.y.at(v)
		fmt.Fprintf(d, `<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="#ddd"/>`+"\n", drawnLeft, at, drawnRight, at)
		d.text(drawnLeft-8, at+4, "", c.y.says(v))
	}
	d.WriteString("</g>\n" + `<g class="x" text-anchor="middle">` + "\n")
	for _, v := range c.x.ticks() {
		at := c.x.at(v)
		fmt.Fprintf(d, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#333"/>`+"\n", at, bottom, at, bottom+5)
		d.text(at, bottom+20, "", c.x.says(v))
	}
	d.WriteString("</g>\n")
	fmt.Fprintf(d, `<rect class="axes" x="%d" y="%.1f" width="%d" height="%d" fill="none" stroke="#333"/>`+"\n", drawnLeft, top, drawnRight-drawnLeft, drawnHeight)
	d.bottom = bottom + 28
	d.lines((drawnLeft+drawnRight)/2, textSize, `text-anchor="middle"`, c.xLabel)
	d.bottom += lineHeight / 2
}

// drawExtents draws what the values of a curve are the middle of: a band, or a bar for each that is by itself.
func (c *chart) drawExtents(d *drawing, i int) {
	colour, _ := lookOf(i)
	var there, back []string
	for _, p := range c.curves[i].points {
		if p.low == 0 && p.high == 0 {
			continue
		}
		x, high, low := c.x.at(p.x), c.y.at(p.high), c.y.at(p.low)
		if c.curves[i].apart {
			fmt.Fprintf(d, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-width="1.5"/>`+"\n", x, low, x, high, colour)
			continue
		}
		there, back = append(there, fmt.Sprintf("%.1f,%.1f", x, high)), append(back, fmt.Sprintf("%.1f,%.1f", x, low))
	}
	slices.Reverse(back)
	if len(there) > 1 {
		fmt.Fprintf(d, `<polygon fill="%s" fill-opacity="0.18" stroke="none" points="%s"/>`+"\n", colour, strings.Join(append(there, back...), " "))
	}
}

func (c *chart) drawCurve(d *drawing, i int) {
	curve := &c.curves[i]
	if !curve.apart {
		var points []string
		for _, p := range curve.points {
			points = append(points, fmt.Sprintf("%.1f,%.1f", c.x.at(p.x), c.y.at(p.y)))
		}
		colour, dash := lookOf(i)
		fmt.Fprintf(d, `<polyline fill="none" stroke="%s" stroke-width="2" stroke-dasharray="%s" points="%s"/>`+"\n", colour, dash, strings.Join(points, " "))
	}
	if len(curve.points) <= mostMarks {
		for _, p := range curve.points {
			d.mark(i, c.x.at(p.x), c.y.at(p.y), p.hover)
		}
	}
}

// drawKey is a curve's part of the legend, which has what the curve is drawn of.
func (c *chart) drawKey(d *drawing, i int) {
	const left, right, middle, text = drawnLeft + 14, drawnLeft + 50, drawnLeft + 32, drawnLeft + 58
	curve, at := &c.curves[i], d.bottom+lineHeight/2
	colour, dash := lookOf(i)
	if curve.apart {
		fmt.Fprintf(d, `<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="%s" stroke-width="1.5"/>`+"\n", middle, at-6, middle, at+6, colour)
	} else {
		fmt.Fprintf(d, `<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="%s" stroke-width="2" stroke-dasharray="%s"/>`+"\n", left, at, right, at, colour, dash)
	}
	if len(curve.points) <= mostMarks {
		d.mark(i, middle, at, "")
	}
	d.lines(text, textSize, "", curve.name)
}

// mark marks a value of a curve, each by its own shape.
func (d *drawing) mark(curve int, x, y float64, hover string) {
	name, place := "circle", fmt.Sprintf(`cx="%.1f" cy="%.1f" r="3.5"`, x, y)
	if curve%2 == 0 {
		name, place = "rect", fmt.Sprintf(`x="%.1f" y="%.1f" width="6" height="6"`, x-3, y-3)
	}
	colour, _ := lookOf(curve)
	if hover == "" {
		fmt.Fprintf(d, `<%s %s fill="%s"/>`+"\n", name, place, colour)
		return
	}
	fmt.Fprintf(d, `<%s %s fill="%s"><title>%s</title></%s>`+"\n", name, place, colour, xmlText(hover), name)
}

// lines adds text below what is there, in as many lines as it needs between x, or twice that if it is the middle, and
// the right margin.
func (d *drawing) lines(x, size int, attributes, text string) {
	width, factor := float64(drawnWidth-drawnMargin-x), 1.0
	if strings.Contains(attributes, "middle") {
		width = drawnRight - drawnLeft
	}
	if strings.Contains(attributes, "bold") {
		factor = boldFactor
	}
	if size != textSize {
		attributes += fmt.Sprintf(` font-size="%d"`, size)
	}
	for _, line := range wrapped(text, width, float64(size)*factor) {
		d.text(float64(x), d.bottom+float64(size), attributes, line)
		d.bottom += float64(lineHeight + size - textSize)
	}
}

// text writes text at a place, with attributes.
func (d *drawing) text(x, y float64, attributes, text string) {
	if attributes != "" {
		attributes = " " + strings.TrimSpace(attributes)
	}
	fmt.Fprintf(d, `<text x="%.1f" y="%.1f"%s>%s</text>`+"\n", x, y, attributes, xmlText(text))
}

// boldFactor is how much wider than others bold letters are at most.
const boldFactor = 1.18

// textWidth is the most that text takes in the fonts that are used where none is named, of which those of Verdana's
// kind are the widest.
func textWidth(text string, size float64) float64 {
	width := 0.0
	for _, r := range text {
		switch {
		case strings.ContainsRune(" .,:;'|/\\Iijl", r):
			width += 0.36
		case strings.ContainsRune("!()[]-frt", r):
			width += 0.44
		case strings.ContainsRune("cksvxyz", r):
			width += 0.63
		case r >= 'a' && r <= 'z' && r != 'm' && r != 'w', r >= '0' && r <= '9':
			width += 0.67
		case r >= 'A' && r <= 'Z' && r != 'M' && r != 'W', strings.ContainsRune("\"#$&*+<=>?^_`{}~", r):
			width += 0.88
		default:
			width += 1.05
		}
	}
	return width * size
}

// wrapped are the lines that text takes in a width: it goes on in a new one at a space, or where a word is too long for
// one line.
func wrapped(text string, width, size float64) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && textWidth(line+" "+word, size) > width {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		for _, r := range word {
			if textWidth(line+string(r), size) > width {
				lines, line = append(lines, line), ""
			}
			line += string(r)
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

func xmlText(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a Builder takes all
	return b.String()
}

// plainNumber is a value on an axis.
func plainNumber(v float64) string {
	if text := fmt.Sprintf("%.6g", v); !strings.Contains(text, "e") {
		return text
	}
	if v >= 1e6 && v < 1e7 {
		return fmt.Sprintf("%.0f", v)
	}
	// Neither a plus nor zeros that say nothing: 2e7, 5e-7.
	number, power, _ := strings.Cut(fmt.Sprintf("%.2e", v), "e")
	number = strings.TrimSuffix(strings.TrimRight(number, "0"), ".")
	return number + "e" + strings.Replace(strings.TrimPrefix(strings.TrimPrefix(power, "+"), "0"), "-0", "-", 1)
}
