package chart

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/onesided/rma/bench/internal/chart/charttest"
	"github.com/onesided/rma/internal/testsize"
)

func TestTextIsNoWiderThanItIsTakenFor(t *testing.T) {
	for r := ' '; r <= '~'; r++ {
		assert.LessOrEqual(t, charttest.Width(r, false), textWidth(string(r), 1), "%q", r)
		assert.LessOrEqual(t, charttest.Width(r, true), textWidth(string(r), boldFactor), "%q", r)
	}
}

// randomChart has curves of any kind over axes of any kind.
func randomChart(random *rand.Rand) *Chart {
	words := func(n int) string {
		text := strings.Repeat("W", random.IntN(3)*random.IntN(60))
		for range n {
			text += " " + strings.Repeat("mi,1K(", 1+random.IntN(2))[:1+random.IntN(12)%6]
		}
		return strings.TrimSpace(text + "x")
	}
	magnitude := func(least, most float64) float64 { return math.Pow(10, least+random.Float64()*(most-least)) }
	c := &Chart{Title: words(random.IntN(30)), Note: words(random.IntN(40)), XLabel: words(random.IntN(20)), YLabel: words(random.IntN(30))}
	for range random.IntN(4) {
		c.Below = append(c.Below, words(random.IntN(60)))
	}
	value, spread := magnitude(-6, 9), magnitude(-3, 5)
	first, counted := 1+random.IntN(1<<random.IntN(20)), random.IntN(2) == 0
	factor := 1.02 + random.Float64()*float64(random.IntN(4))
	for range 1 + random.IntN(13) {
		curve := Curve{Name: words(random.IntN(20))}
		x := float64(first)
		for range 2 + random.IntN(1+random.IntN(60)) {
			p := Point{X: x, Y: value * math.Pow(spread, random.Float64())}
			if random.IntN(2) == 0 {
				p.Low, p.High = p.Y*random.Float64(), p.Y*(1+random.Float64())
			}
			curve.Points = append(curve.Points, p)
			if x = math.Round(x*factor) + 1; x > 1<<33 {
				break
			}
		}
		c.Curves = append(c.Curves, curve)
	}
	format := ByteUnits
	if counted {
		format = PlainNumber
	}
	c.FitAxes(format, PlainNumber)
	c.X.Decimal = counted && random.IntN(2) == 0
	if random.IntN(3) == 0 {
		c.Y.Logarithmic, c.Y.Low = false, 0
		step := NiceStep(c.Y.High)
		c.Y.High = math.Ceil(c.Y.High/step) * step
	}
	return c
}

func TestRandomChartsCanBeRead(t *testing.T) {
	for seed := range testsize.Samples(t, 100) {
		c := randomChart(rand.New(rand.NewPCG(seed, 0)))
		charttest.Check(t, fmt.Sprintf("chart %d", seed), c.SVG())
	}
}

func TestNumbersOfAxes(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 0.0001: "0.0001", 0.00002: "2e-5", 0.5: "0.5", 1500: "1500", 20000: "20000", 1e6: "1000000", 5e6: "5000000", 2e7: "2e7", 1e12: "1e12", 5e-10: "5e-10", 0.3 + 1e-12: "0.3",
	} {
		assert.Equal(t, want, PlainNumber(v))
	}
	for v, want := range map[float64]string{
		1: "1 B", 1000: "1000 B", 1 << 10: "1 KiB", 1536: "1.5 KiB", 10 << 10: "10 KiB", 1<<20 - 1: "1024 KiB", 1 << 20: "1 MiB", 48 << 20: "48 MiB", 1 << 30: "1 GiB", 1 << 45: "32 TiB",
	} {
		assert.Equal(t, want, ByteUnits(v))
	}
}

func TestTextIsWrapped(t *testing.T) {
	assert.Empty(t, wrapped("", 100, 12))
	assert.Equal(t, []string{"one two"}, wrapped(" one  two ", 100, 12))
	assert.Equal(t, []string{"one", "two"}, wrapped("one two", 30, 12))
	assert.Equal(t, []string{"aaa", "aa", "b"}, wrapped("aaaaa b", 25, 12))
}

func TestDecimalAxes(t *testing.T) {
	for _, test := range []struct {
		low, high float64
		want      []float64
	}{
		{0.011, 160, []float64{0.01, 0.1, 1, 10, 100}},
		{3, 1100, []float64{2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000}},
		{3, 40, []float64{2, 5, 10, 20, 50}},
		{5, 5, []float64{5, 10}},
	} {
		c := &Chart{Y: DecimalAxis(test.low, test.high)}
		c.Y.Format = PlainNumber
		c.place(0)
		ticks := c.Y.ticks()
		assert.InEpsilonSlice(t, test.want, ticks, 1e-9)
	}
}

func TestTicksAreRound(t *testing.T) {
	for _, test := range []struct {
		name string
		axis Axis
		want []float64
	}{
		{"linear, up to 2000", Axis{High: 2000}, []float64{0, 500, 1000, 1500, 2000}},
		{"linear, up to 30", Axis{High: 30}, []float64{0, 5, 10, 15, 20, 25, 30}},
		{"linear, up to 8", Axis{High: 8}, []float64{0, 2, 4, 6, 8}},
		{"linear, up to 1", Axis{High: 1}, []float64{0, 0.2, 0.4, 0.6, 0.8, 1}},
		{"decimal", DecimalAxis(24, 4400), []float64{20, 50, 100, 200, 500, 1000, 2000, 5000}},
	} {
		c := &Chart{Y: test.axis}
		c.Y.Format = PlainNumber
		c.place(0)
		assert.InDeltaSlice(t, test.want, c.Y.ticks(), 1e-9, test.name)
	}
	for _, test := range []struct {
		name   string
		axis   Axis
		format func(float64) string
		want   []float64
	}{
		{"sizes", Axis{Low: 4, High: 1 << 20, Logarithmic: true}, ByteUnits, []float64{4, 16, 64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20}},
		{"counts", Axis{Low: 2, High: 8, Logarithmic: true}, PlainNumber, []float64{2, 4, 8}},
		{"decimal counts", Axis{Low: 3906, High: 62500, Logarithmic: true, Decimal: true}, PlainNumber, []float64{5000, 10000, 20000, 50000}},
		{"decimal counts without a power of ten", Axis{Low: 6000, High: 9000, Logarithmic: true, Decimal: true}, PlainNumber, []float64{6000, 6500, 7000, 7500, 8000, 8500, 9000}},
	} {
		c := &Chart{X: test.axis}
		c.X.Format = test.format
		c.place(0)
		assert.InEpsilonSlice(t, test.want, c.X.ticks(), 1e-9, test.name)
	}
}

func TestPositionsOfALogarithmicAxis(t *testing.T) {
	c := &Chart{X: Axis{Low: 4, High: 1 << 20, Logarithmic: true}}
	c.place(0)
	assert.Equal(t, float64(axesLeft), c.X.at(4))
	assert.Equal(t, float64(axesRight), c.X.at(1<<20))
	assert.InDelta(t, (axesLeft+axesRight)/2, c.X.at(2048), 1e-9)
	assert.Equal(t, float64(axesRight), c.X.at(1<<30), "beyond the end")
}

func TestFitAxesNeedsTwoDifferentX(t *testing.T) {
	for name, points := range map[string][]Point{"none": nil, "one x": {{X: 8, Y: 1}, {X: 8, Y: 2}}} {
		c := &Chart{Curves: []Curve{{Name: "a", Points: points}, {Name: "b"}}}
		assert.False(t, c.FitAxes(PlainNumber, PlainNumber), name)
	}
	c := &Chart{Curves: []Curve{{Name: "none"}, {Name: "a", Points: []Point{{X: 64, Y: 3}, {X: 8, Y: 30, Low: 20, High: 90}}}}}
	assert.True(t, c.FitAxes(PlainNumber, PlainNumber))
	assert.Equal(t, []Curve{{Name: "a", Points: []Point{{X: 8, Y: 30, Low: 20, High: 90}, {X: 64, Y: 3}}}}, c.Curves)
	assert.Equal(t, [4]float64{8, 64, 2, 100}, [4]float64{c.X.Low, c.X.High, c.Y.Low, c.Y.High})
}
