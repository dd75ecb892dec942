package paper

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/bench/internal/chart/charttest"
)

func TestDrawingsHaveAllOfAFigure(t *testing.T) {
	for _, p := range usualPlots(t) {
		m := charttest.Check(t, p.Figure, p.SVG())
		assert.Len(t, m.Curves, 2)
		assert.Len(t, m.Marks, 2*len(p.X), "a mark for each value")
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

func TestAxesEndAtRoundValues(t *testing.T) {
	for high, want := range map[float64]float64{1838.7: 2000, 29.1: 30, 7.2: 8, 0.9: 1} {
		p := &Plot{X: []int{4, 8}, Curves: []measuredCurve{{"", "", []float64{0.5, high}}}, figure: &Figure{}}
		_, y := p.axes()
		assert.Zero(t, y.Low)
		assert.InDelta(t, want, y.High, 1e-9, "up to %v", high)
		assert.False(t, y.Logarithmic)
	}
	p := &Plot{X: []int{4, 1 << 20}, Curves: []measuredCurve{{"", "", []float64{24, 4400}}}, figure: &Figure{logarithmic: true}}
	x, y := p.axes()
	assert.InEpsilonSlice(t, []float64{20, 5000, 4, 1 << 20}, []float64{y.Low, y.High, x.Low, x.High}, 1e-9)
	assert.True(t, y.Logarithmic && y.Decimal)
	assert.True(t, x.Logarithmic && !x.Decimal)
	for _, test := range []struct {
		xs      []int
		decimal bool
	}{
		{[]int{2, 3, 4, 5, 6, 7, 8}, false},
		{[]int{3906, 62500}, true},
		{[]int{6000, 9000}, true},
	} {
		p := &Plot{X: test.xs, Curves: []measuredCurve{{"", "", []float64{1, 2}}}, figure: &Figure{counted: true}}
		x, _ := p.axes()
		assert.Equal(t, test.decimal, x.Decimal, "%v", test.xs)
		assert.InEpsilonSlice(t, []float64{float64(test.xs[0]), float64(test.xs[len(test.xs)-1])}, []float64{x.Low, x.High}, 1e-9)
	}
}

// Drawing does not change the sizes at which a figure is measured.
func TestDrawingChangesNoFigure(t *testing.T) {
	for _, f := range Figures() {
		f.measure = func(_ context.Context, f *Figure, _ *curve, _ *Options) ([]float64, error) {
			return slices.Repeat([]float64{1}, len(f.xs)), nil
		}
		printed, err := f.Reproduce(t.Context(), &Options{})
		require.NoError(t, err)
		drawn, err := f.Reproduce(t.Context(), &Options{svg: t.TempDir()})
		require.NoError(t, err)
		assert.Equal(t, printed.X, drawn.X, f.Name())
	}
}
