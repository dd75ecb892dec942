package main

import (
	"encoding/xml"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/bench/internal/stats"
	"github.com/onesided/rma/internal/testsize"
)

// fontWidths are those of the letters from the space on, in thousandths of their size, of DejaVu Sans, and boldWidths of
// its bold letters. Letters of Verdana are at most a twentieth wider, those of Arial and Helvetica are narrower.
var (
	fontWidths = [95]int{
		318, 401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361, 318, 337, 636, 636, 636, 636, 636, 636, 636, 636, 636, 636, 337, 337, 838, 838, 838, 531,
		1000, 684, 686, 698, 770, 632, 575, 775, 752, 295, 295, 656, 557, 863, 748, 787, 603, 787, 695, 635, 611, 732, 684, 989, 685, 611, 685, 390, 337, 390, 838, 500,
		500, 613, 635, 550, 635, 615, 352, 635, 634, 278, 278, 579, 278, 974, 634, 612, 635, 635, 411, 521, 392, 634, 592, 818, 592, 592, 525, 636, 337, 636, 838,
	}
	boldWidths = [95]int{
		348, 456, 521, 838, 696, 1002, 872, 306, 457, 457, 523, 838, 380, 415, 380, 365, 696, 696, 696, 696, 696, 696, 696, 696, 696, 696, 400, 400, 838, 838, 838, 580,
		1000, 774, 762, 734, 830, 683, 683, 821, 837, 372, 372, 775, 637, 995, 837, 850, 733, 850, 770, 720, 682, 812, 774, 1103, 771, 724, 725, 457, 365, 457, 838, 500,
		500, 675, 716, 593, 716, 678, 435, 716, 712, 343, 343, 665, 343, 1042, 712, 687, 716, 716, 493, 595, 478, 712, 652, 924, 645, 652, 582, 712, 365, 712, 838,
	}
)

func widthIn(widths *[95]int, r rune) float64 {
	if r < ' ' || r > '~' {
		return 1.05
	}
	return 1.05 * float64(widths[r-' ']) / 1000
}

func TestTextIsNoWiderThanItIsTakenFor(t *testing.T) {
	for r := ' '; r <= '~'; r++ {
		assert.LessOrEqual(t, widthIn(&fontWidths, r), textWidth(string(r), 1), "%q", r)
		assert.LessOrEqual(t, widthIn(&boldWidths, r), textWidth(string(r), boldFactor), "%q", r)
	}
}

// A box is a part of a drawing.
type box struct {
	left, top, right, bottom float64
	what                     string
}

func (b box) meets(o box) bool {
	return b.left < o.right && o.left < b.right && b.top < o.bottom && o.top < b.bottom
}

// crossed reports whether a line of b, from corner to corner, is in a part of o: it is not if all of o is on one side.
func (b box) crossed(from, to [2]float64) bool {
	reach := box{min(from[0], to[0]), min(from[1], to[1]), max(from[0], to[0]) + 1e-6, max(from[1], to[1]) + 1e-6, ""}
	if !b.meets(reach) {
		return false
	}
	above, below := 0, 0
	for _, corner := range [][2]float64{{b.left, b.top}, {b.right, b.top}, {b.left, b.bottom}, {b.right, b.bottom}} {
		side := (to[0]-from[0])*(corner[1]-from[1]) - (to[1]-from[1])*(corner[0]-from[0])
		if side >= 0 {
			above++
		}
		if side <= 0 {
			below++
		}
	}
	return above < 4 && below < 4
}

// A stroke is how a curve looks, in the drawing or in its legend.
type stroke struct {
	colour, dash string
	mark         string
}

// An image is what a drawing has where.
type image struct {
	whole, axes  box
	texts        []box
	x, y         []box // texts of the axes
	lines        [][][2]float64
	areas        []box // marks of curves
	legend       []box
	curves, keys []stroke
	names        []string
}

func number(t *testing.T, text string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(text, 64)
	require.NoError(t, err)
	require.False(t, math.IsNaN(v) || math.IsInf(v, 0), text)
	return v
}

// read finds where everything is in a drawing.
func read(t *testing.T, svg string) *image {
	t.Helper()
	type element struct {
		name       string
		attributes map[string]string
	}
	var stack []element
	inherited := func(name, or string) string {
		for i := len(stack) - 1; i >= 0; i-- {
			if v, ok := stack[i].attributes[name]; ok {
				return v
			}
		}
		return or
	}
	m := new(image)
	decoder := xml.NewDecoder(strings.NewReader(svg))
	for {
		token, err := decoder.Token()
		if token == nil {
			require.Empty(t, stack)
			return m
		}
		require.NoError(t, err)
		switch token := token.(type) {
		case xml.StartElement:
			e := element{token.Name.Local, make(map[string]string)}
			for _, a := range token.Attr {
				e.attributes[a.Name.Local] = a.Value
			}
			at := func(name string) float64 { return number(t, e.attributes[name]) }
			group := inherited("class", "")
			var here box
			switch e.name {
			case "svg":
				m.whole = box{0, 0, at("width"), at("height"), ""}
				require.Equal(t, fmt.Sprintf("0 0 %g %g", m.whole.right, m.whole.bottom), e.attributes["viewBox"])
			case "polyline", "polygon":
				var points [][2]float64
				for pair := range strings.FieldsSeq(e.attributes["points"]) {
					x, y, _ := strings.Cut(pair, ",")
					points = append(points, [2]float64{number(t, x), number(t, y)})
				}
				m.lines = append(m.lines, points)
				if e.name == "polyline" {
					m.curves = append(m.curves, stroke{e.attributes["stroke"], e.attributes["stroke-dasharray"], ""})
				}
			case "line":
				here = box{min(at("x1"), at("x2")) - 1, min(at("y1"), at("y2")) - 1, max(at("x1"), at("x2")) + 1, max(at("y1"), at("y2")) + 1, "line"}
				if group == "legend" {
					m.keys = append(m.keys, stroke{e.attributes["stroke"], e.attributes["stroke-dasharray"], ""})
				} else if group == "curves" {
					m.lines = append(m.lines, [][2]float64{{at("x1"), at("y1")}, {at("x2"), at("y2")}})
				}
			case "circle":
				here = box{at("cx") - at("r"), at("cy") - at("r"), at("cx") + at("r"), at("cy") + at("r"), "circle"}
			case "rect":
				if e.attributes["width"] != "100%" {
					here = box{at("x"), at("y"), at("x") + at("width"), at("y") + at("height"), "rect"}
				}
				if e.attributes["class"] == "axes" {
					m.axes = here
				}
			}
			if here.what != "" && group == "legend" {
				m.legend = append(m.legend, here)
			}
			if here.what == "circle" || here.what == "rect" && group != "" {
				if group == "legend" {
					m.keys[len(m.keys)-1].mark = here.what
				} else {
					m.areas = append(m.areas, here)
					if len(m.curves) > 0 {
						m.curves[len(m.curves)-1].mark = here.what
					}
				}
			}
			stack = append(stack, e)
		case xml.EndElement:
			stack = stack[:len(stack)-1]
		case xml.CharData:
			if len(stack) == 0 || stack[len(stack)-1].name != "text" {
				continue
			}
			size, widths := number(t, inherited("font-size", "")), &fontWidths
			if inherited("font-weight", "") == "bold" {
				widths = &boldWidths
			}
			width := 0.0
			for _, r := range string(token) {
				width += size * widthIn(widths, r)
			}
			x, y := number(t, inherited("x", "")), number(t, inherited("y", ""))
			x -= map[string]float64{"": 0, "middle": 0.5, "end": 1}[inherited("text-anchor", "")] * width
			b := box{x, y - 0.93*size, x + width, y + 0.24*size, string(token)}
			m.texts = append(m.texts, b)
			switch inherited("class", "") {
			case "legend":
				m.legend, m.names = append(m.legend, b), append(m.names, string(token))
			case "x":
				m.x = append(m.x, b)
			case "y":
				m.y = append(m.y, b)
			}
		}
	}
}

// tickText is a number as people write it, with its unit, or a name.
var tickText = regexp.MustCompile(`^(-?\d{1,7}(\.\d{1,6})?( (B|KiB|MiB|GiB|TiB|%))?|\d(\.\d\d?)?e-?\d+|max|[a-z-]+)$`)

// check asserts that a drawing can be read: all is inside, no text is over anything, and the legend has the curves.
func check(t *testing.T, name, svg string) *image {
	t.Helper()
	m := read(t, svg)
	for i, text := range m.texts {
		assert.True(t, text.left >= 0 && text.top >= 0 && text.right <= m.whole.right && text.bottom <= m.whole.bottom, "%s: %q is clipped: %v in %v", name, text.what, text, m.whole)
		for _, other := range m.texts[:i] {
			assert.False(t, text.meets(other), "%s: %q is over %q", name, text.what, other.what)
		}
	}
	for _, b := range append(m.legend, m.texts...) {
		for _, line := range m.lines {
			for i := range line[1:] {
				assert.False(t, b.crossed(line[i], line[i+1]), "%s: %q is over a curve at %v", name, b.what, line[i])
			}
		}
		for _, mark := range m.areas {
			assert.False(t, b.meets(mark), "%s: %q is over a mark", name, b.what)
		}
		assert.False(t, b.meets(m.axes), "%s: %q is within the axes", name, b.what)
	}
	for _, line := range m.lines {
		for _, p := range line {
			assert.True(t, p[0] >= m.axes.left && p[0] <= m.axes.right && p[1] >= m.axes.top-0.1 && p[1] <= m.axes.bottom+0.1, "%s: %v is beyond the axes", name, p)
		}
	}
	for _, ticks := range [][]box{m.x, m.y} {
		assert.Greater(t, len(ticks), 1, "%s: marks of an axis", name)
		for i, tick := range ticks {
			assert.Regexp(t, tickText, tick.what, name)
			if i > 0 {
				assert.NotEqual(t, ticks[i-1].what, tick.what, name)
			}
		}
	}
	if len(m.curves) > 0 {
		assert.Equal(t, m.curves, m.keys, "%s: the legend has the looks of the curves", name)
	}
	for i, key := range m.keys {
		assert.NotContains(t, m.keys[:i], key, "%s: curves look alike", name)
	}
	return m
}

func TestKeptFiguresCanBeRead(t *testing.T) {
	files, err := filepath.Glob("figures/*.svg")
	require.NoError(t, err)
	assert.Len(t, files, len(figures()))
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		check(t, file, string(text))
	}
}

// The legend has the name of each curve, and what the cases below call it.
func TestKeptFiguresNameTheirCurves(t *testing.T) {
	for _, f := range figures() {
		text, err := os.ReadFile("figures/" + f.id() + ".svg")
		require.NoError(t, err)
		m := read(t, string(text))
		names := strings.Join(m.names, " ")
		for _, c := range f.curves {
			assert.Contains(t, names, c.name+" ("+c.short+")", f.id())
		}
		assert.Len(t, m.keys, len(f.curves), f.id())
	}
}

// randomChart has curves of any kind over axes of any kind.
func randomChart(random *rand.Rand) *chart {
	words := func(n int) string {
		text := strings.Repeat("W", random.IntN(3)*random.IntN(60))
		for range n {
			text += " " + strings.Repeat("mi,1K(", 1+random.IntN(2))[:1+random.IntN(12)%6]
		}
		return strings.TrimSpace(text + "x")
	}
	magnitude := func(least, most float64) float64 { return math.Pow(10, least+random.Float64()*(most-least)) }
	c := &chart{title: words(random.IntN(30)), note: words(random.IntN(40)), xLabel: words(random.IntN(20)), yLabel: words(random.IntN(30))}
	for range random.IntN(4) {
		c.below = append(c.below, words(random.IntN(60)))
	}
	value, spread := magnitude(-6, 9), magnitude(-3, 5)
	first, counted := 1+random.IntN(1<<random.IntN(20)), random.IntN(2) == 0
	factor := 1.02 + random.Float64()*float64(random.IntN(4))
	for range 1 + random.IntN(13) {
		curve := chartCurve{name: words(random.IntN(20))}
		x := float64(first)
		for range 2 + random.IntN(1+random.IntN(60)) {
			p := chartPoint{x: x, y: value * math.Pow(spread, random.Float64())}
			if random.IntN(2) == 0 {
				p.low, p.high = p.y*random.Float64(), p.y*(1+random.Float64())
			}
			curve.points = append(curve.points, p)
			if x = math.Round(x*factor) + 1; x > 1<<33 {
				break
			}
		}
		c.curves = append(c.curves, curve)
	}
	says := byteUnits
	if counted {
		says = plainNumber
	}
	c = c.drawn(says, plainNumber)
	c.x.decimal = counted && random.IntN(2) == 0
	if random.IntN(3) == 0 {
		c.y.logarithmic, c.y.low = false, 0
		step := niceStep(c.y.high)
		c.y.high = math.Ceil(c.y.high/step) * step
	}
	return c
}

func TestRandomChartsCanBeRead(t *testing.T) {
	for seed := range testsize.Samples(t, 100) {
		c := randomChart(rand.New(rand.NewPCG(seed, 0)))
		check(t, fmt.Sprintf("chart %d", seed), c.svg())
	}
}

// Of the reports' other charts, on whose axes names and numbers of ranks stand.
func TestChartsOfSchemesAndRanksCanBeRead(t *testing.T) {
	var patterns [][]result
	for i, name := range reportPatterns {
		var pattern []result
		for k, s := range schemes() {
			ratios := stats.NewSeries(2)
			ratios.Set(0, 1+0.1*float64(i*k))
			ratios.Set(1, 1+0.3*float64(i+k))
			pattern = append(pattern, result{Case: strings.TrimSuffix(name, ":8"), Size: 8, Unit: stats.Microseconds, Scheme: s.name, Ratio: &ratios})
		}
		patterns = append(patterns, pattern)
	}
	c := schemesChart(patterns)
	c.title = "Ways to arrange operations, on and off"
	m := check(t, "schemes", c.svg())
	assert.Len(t, m.x, len(schemes()))
	assert.Len(t, m.names, len(patterns))
	assert.Len(t, m.areas, len(patterns)*len(schemes()), "a mark for each median")

	var all []*growth
	for i, w := range workloads() {
		g := &growth{Workload: w.name}
		for _, n := range reportRanks {
			g.Points = append(g.Points, scalePoint{Ranks: n, Micros: float64((i + 1) * n)})
		}
		all = append(all, g)
	}
	m = check(t, "scale", scaleChart(all).svg())
	assert.Len(t, m.x, len(reportRanks))
	assert.Len(t, m.names, len(all))
}

func TestNumbersOfAxes(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 0.0001: "0.0001", 0.00002: "2e-5", 0.5: "0.5", 1500: "1500", 20000: "20000", 1e6: "1000000", 5e6: "5000000", 2e7: "2e7", 1e12: "1e12", 5e-10: "5e-10", 0.3 + 1e-12: "0.3",
	} {
		assert.Equal(t, want, plainNumber(v))
	}
	for v, want := range map[float64]string{
		1: "1 B", 1000: "1000 B", 1 << 10: "1 KiB", 1536: "1.5 KiB", 10 << 10: "10 KiB", 1<<20 - 1: "1024 KiB", 1 << 20: "1 MiB", 48 << 20: "48 MiB", 1 << 30: "1 GiB", 1 << 45: "32 TiB",
	} {
		assert.Equal(t, want, byteUnits(v))
	}
}

func TestTextIsWrapped(t *testing.T) {
	assert.Empty(t, wrapped("", 100, 12))
	assert.Equal(t, []string{"one two"}, wrapped(" one  two ", 100, 12))
	assert.Equal(t, []string{"one", "two"}, wrapped("one two", 30, 12))
	assert.Equal(t, []string{"aaa", "aa", "b"}, wrapped("aaaaa b", 25, 12))
}
