package paper

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/bench/internal/chart"
	"github.com/onesided/rma/bench/internal/chart/charttest"
)

func TestDrawingsHaveAllOfAFigure(t *testing.T) {
	for _, p := range usualPlots(t) {
		m := charttest.Check(t, p.Figure, p.SVG())
		assert.Len(t, m.Curves, 2)
		assert.Len(t, m.Areas, 2*len(p.X), "a mark for each value")
		assert.Equal(t, []string{p.Curves[0].Name + " (off)", p.Curves[1].Name + " (on)"}, m.Names)
		var texts []string
		for _, text := range m.Texts {
			texts = append(texts, text.What)
		}
		for _, label := range []string{"size of an operation", p.figure.yLabel, "1 KiB", "1 MiB", "profile " + p.Profile + ", in virtual time"} {
			assert.Contains(t, texts, label)
		}
		assert.Equal(t, len(p.Verdicts), strings.Count(strings.Join(texts, " "), "paper "))
	}
}

func TestAxesHaveRoundMarks(t *testing.T) {
	for high, want := range map[float64][]float64{
		1838.7: {0, 500, 1000, 1500, 2000},
		29.1:   {0, 5, 10, 15, 20, 25, 30},
		7.2:    {0, 2, 4, 6, 8},
		0.9:    {0, 0.2, 0.4, 0.6, 0.8, 1},
	} {
		p := &Plot{X: []int{4, 8}, Curves: []measuredCurve{{"", "", []float64{0.5, high}}}, figure: &Figure{}}
		_, y := p.placed()
		assert.InDeltaSlice(t, want, y.Ticks(), 1e-9, "up to %v", high)
	}
	p := &Plot{X: []int{4, 1 << 20}, Curves: []measuredCurve{{"", "", []float64{24, 4400}}}, figure: &Figure{logarithmic: true}}
	x, y := p.placed()
	assert.InEpsilonSlice(t, []float64{20, 50, 100, 200, 500, 1000, 2000, 5000}, y.Ticks(), 1e-9)
	assert.Equal(t, []float64{4, 16, 64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20}, x.Ticks())
	assert.Equal(t, float64(chart.Left), x.At(4))
	assert.Equal(t, float64(chart.Right), x.At(1<<20))
	assert.InDelta(t, (chart.Left+chart.Right)/2, x.At(2048), 1e-9)
	for _, test := range []struct {
		xs   []int
		want []float64
	}{
		{[]int{2, 3, 4, 5, 6, 7, 8}, []float64{2, 4, 8}},
		{[]int{3906, 62500}, []float64{5000, 10000, 20000, 50000}},
		{[]int{6000, 9000}, []float64{6000, 6500, 7000, 7500, 8000, 8500, 9000}},
	} {
		p := &Plot{X: test.xs, Curves: []measuredCurve{{"", "", []float64{1, 2}}}, figure: &Figure{counted: true}}
		x, _ := p.placed()
		assert.InEpsilonSlice(t, test.want, x.Ticks(), 1e-9)
	}
}

// placed are the axes of the plot as a chart has them.
func (p *Plot) placed() (x, y chart.Axis) {
	c := new(chart.Chart)
	c.X, c.Y = p.axes()
	c.Place(0)
	return c.X, c.Y
}

// A figure is measured at the same places whether it is drawn or not, so that the same is told of it.
func TestDrawingChangesNoFigure(t *testing.T) {
	for _, f := range Figures() {
		f.measure = func(_ context.Context, f *Figure, _ *curve, _ *Options) ([]float64, error) {
			return slices.Repeat([]float64{1}, len(f.xs)), nil
		}
		told, err := f.Reproduce(t.Context(), &Options{})
		require.NoError(t, err)
		drawn, err := f.Reproduce(t.Context(), &Options{svg: t.TempDir()})
		require.NoError(t, err)
		assert.Equal(t, told.X, drawn.X, f.Name())
	}
}
