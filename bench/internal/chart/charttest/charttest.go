package charttest

import (
	"encoding/xml"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fontWidths are the widths of the letters of DejaVu Sans from the space on, in thousandths of the size, and boldWidths
// those of its bold letters. Letters of Verdana are at most a twentieth wider, those of Arial and Helvetica are
// narrower.
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

// Width returns an upper bound of the width of a letter, in units of its size.
func Width(r rune, bold bool) float64 {
	switch {
	case r < ' ' || r > '~':
		return 1.05
	case bold:
		return 1.05 * float64(boldWidths[r-' ']) / 1000
	}
	return 1.05 * float64(fontWidths[r-' ']) / 1000
}

// A Box is the rectangle around an element of a drawing. What is the text of the element, or its kind.
type Box struct {
	What string

	left, top, right, bottom float64
}

func (b Box) meets(o Box) bool {
	return b.left < o.right && o.left < b.right && b.top < o.bottom && o.top < b.bottom
}

// crossed reports whether a line of b, from corner to corner, is in a part of o: it is not if all of o is on one side.
func (b Box) crossed(from, to [2]float64) bool {
	reach := Box{"", min(from[0], to[0]), min(from[1], to[1]), max(from[0], to[0]) + 1e-6, max(from[1], to[1]) + 1e-6}
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

// A Stroke is how a curve looks, in the drawing or in its legend. Strokes are only compared.
type Stroke struct {
	colour, dash string
	mark         string
}

// An Image is the elements of a drawing and their positions.
type Image struct {
	Texts        []Box
	X            []Box // the texts of the horizontal axis
	Marks        []Box // the marks of the curves' values
	Curves, Keys []Stroke
	Names        []string // in the legend

	y           []Box // the texts of the vertical axis
	whole, axes Box
	lines       [][][2]float64
	legend      []Box
}

func number(t *testing.T, text string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(text, 64)
	require.NoError(t, err)
	require.False(t, math.IsNaN(v) || math.IsInf(v, 0), text)
	return v
}

// Read returns the elements of a drawing.
func Read(t *testing.T, svg string) *Image {
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
	m := new(Image)
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
			var here Box
			switch e.name {
			case "svg":
				m.whole = Box{"", 0, 0, at("width"), at("height")}
				require.Equal(t, fmt.Sprintf("0 0 %g %g", m.whole.right, m.whole.bottom), e.attributes["viewBox"])
			case "polyline", "polygon":
				var points [][2]float64
				for pair := range strings.FieldsSeq(e.attributes["points"]) {
					x, y, _ := strings.Cut(pair, ",")
					points = append(points, [2]float64{number(t, x), number(t, y)})
				}
				m.lines = append(m.lines, points)
				if e.name == "polyline" {
					m.Curves = append(m.Curves, Stroke{e.attributes["stroke"], e.attributes["stroke-dasharray"], ""})
				}
			case "line":
				here = Box{"line", min(at("x1"), at("x2")) - 1, min(at("y1"), at("y2")) - 1, max(at("x1"), at("x2")) + 1, max(at("y1"), at("y2")) + 1}
				if group == "legend" {
					m.Keys = append(m.Keys, Stroke{e.attributes["stroke"], e.attributes["stroke-dasharray"], ""})
				} else if group == "curves" {
					m.lines = append(m.lines, [][2]float64{{at("x1"), at("y1")}, {at("x2"), at("y2")}})
				}
			case "circle":
				here = Box{"circle", at("cx") - at("r"), at("cy") - at("r"), at("cx") + at("r"), at("cy") + at("r")}
			case "rect":
				if e.attributes["width"] != "100%" {
					here = Box{"rect", at("x"), at("y"), at("x") + at("width"), at("y") + at("height")}
				}
				if e.attributes["class"] == "axes" {
					m.axes = here
				}
			}
			if here.What != "" && group == "legend" {
				m.legend = append(m.legend, here)
			}
			if here.What == "circle" || here.What == "rect" && group != "" {
				if group == "legend" {
					m.Keys[len(m.Keys)-1].mark = here.What
				} else {
					m.Marks = append(m.Marks, here)
					if len(m.Curves) > 0 {
						m.Curves[len(m.Curves)-1].mark = here.What
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
			size, bold := number(t, inherited("font-size", "")), inherited("font-weight", "") == "bold"
			width := 0.0
			for _, r := range string(token) {
				width += size * Width(r, bold)
			}
			x, y := number(t, inherited("x", "")), number(t, inherited("y", ""))
			x -= map[string]float64{"": 0, "middle": 0.5, "end": 1}[inherited("text-anchor", "")] * width
			b := Box{string(token), x, y - 0.93*size, x + width, y + 0.24*size}
			m.Texts = append(m.Texts, b)
			switch inherited("class", "") {
			case "legend":
				m.legend, m.Names = append(m.legend, b), append(m.Names, string(token))
			case "x":
				m.X = append(m.X, b)
			case "y":
				m.y = append(m.y, b)
			}
		}
	}
}

// tickText is a number as people write it, with its unit, or a name.
var tickText = regexp.MustCompile(`^(-?\d{1,7}(\.\d{1,6})?( (B|KiB|MiB|GiB|TiB|%))?|\d(\.\d\d?)?e-?\d+|max|[a-z-]+)$`)

// Check asserts that a drawing can be read: all is inside, no text is over anything, and the legend has the curves.
func Check(t *testing.T, name, svg string) *Image {
	t.Helper()
	m := Read(t, svg)
	for i, text := range m.Texts {
		assert.True(t, text.left >= 0 && text.top >= 0 && text.right <= m.whole.right && text.bottom <= m.whole.bottom, "%s: %q is clipped: %v in %v", name, text.What, text, m.whole)
		for _, other := range m.Texts[:i] {
			assert.False(t, text.meets(other), "%s: %q is over %q", name, text.What, other.What)
		}
	}
	for _, b := range append(m.legend, m.Texts...) {
		for _, line := range m.lines {
			for i := range line[1:] {
				assert.False(t, b.crossed(line[i], line[i+1]), "%s: %q is over a curve at %v", name, b.What, line[i])
			}
		}
		for _, mark := range m.Marks {
			assert.False(t, b.meets(mark), "%s: %q is over a mark", name, b.What)
		}
		assert.False(t, b.meets(m.axes), "%s: %q is within the axes", name, b.What)
	}
	for _, line := range m.lines {
		for _, p := range line {
			assert.True(t, p[0] >= m.axes.left && p[0] <= m.axes.right && p[1] >= m.axes.top-0.1 && p[1] <= m.axes.bottom+0.1, "%s: %v is beyond the axes", name, p)
		}
	}
	for _, ticks := range [][]Box{m.X, m.y} {
		assert.Greater(t, len(ticks), 1, "%s: ticks of an axis", name)
		for i, tick := range ticks {
			assert.Regexp(t, tickText, tick.What, name)
			if i > 0 {
				assert.NotEqual(t, ticks[i-1].What, tick.What, name)
			}
		}
	}
	if len(m.Curves) > 0 {
		assert.Equal(t, m.Curves, m.Keys, "%s: the legend has the looks of the curves", name)
	}
	for i, key := range m.Keys {
		assert.NotContains(t, m.Keys[:i], key, "%s: curves look alike", name)
	}
	return m
}
