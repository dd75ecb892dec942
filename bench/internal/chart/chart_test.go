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
		assert.LessOrEqual(t, charttest.WidthIn(&charttest.FontWidths, r), textWidth(string(r), 1), "%q", r)
		assert.LessOrEqual(t, charttest.WidthIn(&charttest.BoldWidths, r), textWidth(string(r), boldFactor), "%q", r)
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
	says := ByteUnits
	if counted {
		says = PlainNumber
	}
	c = c.Drawn(says, PlainNumber)
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
		c.Y.Says = PlainNumber
		c.Place(0)
		ticks := c.Y.Ticks()
		assert.InEpsilonSlice(t, test.want, ticks, 1e-9)
	}
}
