package chart

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// The dimensions of a chart, in the units of SVG.
const (
	drawnWidth, drawnMargin = 720, 8
	// The axes are between axesLeft and axesRight, and drawnHeight high.
	axesLeft, axesRight, drawnHeight = 76, 680, 344
	titleSize, textSize              = 15, 12
	// lineHeight is the distance of lines of text.
	lineHeight = 16
	// mostMarks is the greatest number of points for which a curve has marks: more would hide it.
	mostMarks = 40
)

// curveLooks are the colors and dashes of the curves. They differ without colors, too: off is dashed.
var curveLooks = []struct{ colour, dash string }{{"#b5541c", "7 4"}, {"#1f5fa8", "none"}, {"#2e7d4f", "2 3"}, {"#7a4b94", "10 3 2 3"}, {"#8a6d00", "5 2"}, {"#444444", "12 4"}}

// lookOf returns the color and the dashes of a curve by its index. Those of the first 36 curves differ.
func lookOf(curve int) (colour, dash string) {
	n := len(curveLooks)
	return curveLooks[curve%n].colour, curveLooks[(curve+curve/n)%n].dash
}

// A Chart is a set of curves over two axes. All texts are outside the axes, where no curve is.
type Chart struct {
	// Title is above the chart, Note in smaller letters below the title.
	Title, Note    string
	XLabel, YLabel string
	X, Y           Axis
	Curves         []Curve
	// Below are the paragraphs below the legend.
	Below []string
}

// A Curve is points in the order of their x.
type Curve struct {
	Name   string
	Points []Point
	// Apart is set if no line connects the points. Each then has its extent as a line.
	Apart bool
}

// A Point is a value, and the extent of the values of which it is the median.
type Point struct {
	X, Y      float64
	Low, High float64 // both 0: no extent
	// Hover is the text that is shown while the pointer is over the point, "" for none.
	Hover string
}

// place puts the axes below top, and tells them the size of texts. The positions and the ticks of an axis need it.
func (c *Chart) place(top float64) {
	c.X.from, c.X.to = axesLeft, axesRight
	c.X.extent = func(text string) float64 { return textWidth(text, textSize) + drawnMargin }
	c.Y.from, c.Y.to = top+drawnHeight, top
	c.Y.extent = func(string) float64 { return lineHeight }
}

// A drawing is the elements of a chart, added from the top, and the height that they need.
type drawing struct {
	strings.Builder
	bottom float64
}

// SVG draws the chart. The axes must have different ends and a Format, as after FitAxes.
func (c *Chart) SVG() string {
	d := new(drawing)
	d.bottom = drawnMargin
	d.lines(axesLeft, titleSize, `font-weight="bold"`, c.Title)
	d.bottom += 3
	d.lines(axesLeft, textSize, `fill="#555"`, c.Note)
	d.bottom += 4
	d.lines(drawnMargin, textSize, "", c.YLabel)
	c.place(d.bottom + lineHeight)
	c.drawAxes(d)
	d.WriteString(`<g class="curves">` + "\n")
	for i := range c.Curves {
		c.drawExtents(d, i)
	}
	for i := range c.Curves {
		c.drawCurve(d, i)
	}
	d.WriteString("</g>\n" + `<g class="legend">` + "\n")
	for i := range c.Curves {
		c.drawKey(d, i)
	}
	d.WriteString("</g>\n")
	d.bottom += lineHeight / 2
	for _, text := range c.Below {
		d.lines(axesLeft, textSize, `fill="#333"`, text)
	}
	height := math.Ceil(d.bottom) + drawnMargin
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%g" viewBox="0 0 %d %g" font-family="sans-serif" font-size="%d">
<title>%s</title>
<rect width="100%%" height="100%%" fill="white"/>
%s</svg>
`, drawnWidth, height, drawnWidth, height, textSize, XMLText(c.Title), d.String())
}

func (c *Chart) drawAxes(d *drawing) {
	top, bottom := c.Y.to, c.Y.from
	d.WriteString(`<g class="y" text-anchor="end">` + "\n")
	for _, v := range c.Y.ticks() {
		at := c.Y.at(v)
		fmt.Fprintf(d, `<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="#ddd"/>`+"\n", axesLeft, at, axesRight, at)
		d.text(axesLeft-8, at+4, "", c.Y.Format(v))
	}
	d.WriteString("</g>\n" + `<g class="x" text-anchor="middle">` + "\n")
	for _, v := range c.X.ticks() {
		at := c.X.at(v)
		fmt.Fprintf(d, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#333"/>`+"\n", at, bottom, at, bottom+5)
		d.text(at, bottom+20, "", c.X.Format(v))
	}
	d.WriteString("</g>\n")
	fmt.Fprintf(d, `<rect class="axes" x="%d" y="%.1f" width="%d" height="%d" fill="none" stroke="#333"/>`+"\n", axesLeft, top, axesRight-axesLeft, drawnHeight)
	d.bottom = bottom + 28
	d.lines((axesLeft+axesRight)/2, textSize, `text-anchor="middle"`, c.XLabel)
	d.bottom += lineHeight / 2
}

// drawExtents draws the extents of a curve's values: a band, or a bar for each separate point.
func (c *Chart) drawExtents(d *drawing, i int) {
	colour, _ := lookOf(i)
	var there, back []string
	for _, p := range c.Curves[i].Points {
		if p.Low == 0 && p.High == 0 {
			continue
		}
		x, high, low := c.X.at(p.X), c.Y.at(p.High), c.Y.at(p.Low)
		if c.Curves[i].Apart {
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

func (c *Chart) drawCurve(d *drawing, i int) {
	curve := &c.Curves[i]
	if !curve.Apart {
		var points []string
		for _, p := range curve.Points {
			points = append(points, fmt.Sprintf("%.1f,%.1f", c.X.at(p.X), c.Y.at(p.Y)))
		}
		colour, dash := lookOf(i)
		fmt.Fprintf(d, `<polyline fill="none" stroke="%s" stroke-width="2" stroke-dasharray="%s" points="%s"/>`+"\n", colour, dash, strings.Join(points, " "))
	}
	if len(curve.Points) <= mostMarks {
		for _, p := range curve.Points {
			d.mark(i, c.X.at(p.X), c.Y.at(p.Y), p.Hover)
		}
	}
}

// drawKey draws a curve's part of the legend.
func (c *Chart) drawKey(d *drawing, i int) {
	const left, right, middle, text = axesLeft + 14, axesLeft + 50, axesLeft + 32, axesLeft + 58
	curve, at := &c.Curves[i], d.bottom+lineHeight/2
	colour, dash := lookOf(i)
	if curve.Apart {
		fmt.Fprintf(d, `<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="%s" stroke-width="1.5"/>`+"\n", middle, at-6, middle, at+6, colour)
	} else {
		fmt.Fprintf(d, `<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="%s" stroke-width="2" stroke-dasharray="%s"/>`+"\n", left, at, right, at, colour, dash)
	}
	if len(curve.Points) <= mostMarks {
		d.mark(i, middle, at, "")
	}
	d.lines(text, textSize, "", curve.Name)
}

// mark marks a value of a curve. Each curve has its own shape.
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
	fmt.Fprintf(d, `<%s %s fill="%s"><title>%s</title></%s>`+"\n", name, place, colour, XMLText(hover), name)
}

// lines adds text below the present elements. It wraps the text between x and the right margin, or within twice that
// width if x is the middle.
func (d *drawing) lines(x, size int, attributes, text string) {
	width, factor := float64(drawnWidth-drawnMargin-x), 1.0
	if strings.Contains(attributes, "middle") {
		width = axesRight - axesLeft
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

// text writes text at a position, with attributes.
func (d *drawing) text(x, y float64, attributes, text string) {
	if attributes != "" {
		attributes = " " + strings.TrimSpace(attributes)
	}
	fmt.Fprintf(d, `<text x="%.1f" y="%.1f"%s>%s</text>`+"\n", x, y, attributes, XMLText(text))
}

// FitAxes sets the axes to the extent of the points, and their formats to x and y. It removes curves without points,
// sorts points by x, and reports whether there are two different x. Otherwise there is nothing to draw.
func (c *Chart) FitAxes(x, y func(float64) string) bool {
	var xs, ys []float64
	c.Curves = slices.DeleteFunc(c.Curves, func(curve Curve) bool { return len(curve.Points) == 0 })
	for i, curve := range c.Curves {
		slices.SortStableFunc(c.Curves[i].Points, func(a, b Point) int { return cmp.Compare(a.X, b.X) })
		for _, p := range curve.Points {
			xs, ys = append(xs, p.X), append(ys, p.Y)
			if p.Low > 0 {
				ys = append(ys, p.Low, p.High)
			}
		}
	}
	if len(xs) == 0 || slices.Min(xs) == slices.Max(xs) {
		return false
	}
	c.X = Axis{Low: slices.Min(xs), High: slices.Max(xs), Logarithmic: true, Format: x}
	c.Y = DecimalAxis(slices.Min(ys), slices.Max(ys))
	c.Y.Format = y
	return true
}
