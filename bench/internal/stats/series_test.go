package stats

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestMedian(t *testing.T) {
	for _, test := range []struct {
		values []float64
		want   float64
	}{
		{[]float64{3}, 3},
		{[]float64{1, 2}, 1.5},
		{[]float64{9, 1, 5}, 5},
		{[]float64{9, 1, 5, 6}, 5.5},
	} {
		given := append([]float64(nil), test.values...)
		assert.Equal(t, test.want, Median(test.values))
		assert.Equal(t, given, test.values, "the order of rounds is kept")
	}
}

// rounds is a series of these values, where 0 stands for a round without one.
func rounds(values ...float64) Series {
	s := NewSeries(len(values))
	for round, v := range values {
		if v != 0 {
			s.Set(round, v)
		}
	}
	return s
}

func TestOnlyValuesOfOneRoundAreDivided(t *testing.T) {
	for _, test := range []struct{ a, b, want Series }{
		{rounds(2, 6, 9), rounds(1, 2, 3), rounds(2, 3, 3)},
		{rounds(2, 0, 9), rounds(1, 2, 3), rounds(2, 0, 3)},
		{rounds(2, 6, 9), rounds(0, 2, 0), rounds(0, 3, 0)},
		{rounds(2, 0), rounds(0, 2), rounds(0, 0)},
		{rounds(), rounds(), rounds()},
	} {
		assert.Equal(t, test.want, Ratios(test.a, test.b))
	}
	zero := NewSeries(1)
	zero.Set(0, 0)
	assert.Equal(t, rounds(0), Ratios(rounds(2), zero), "there is no ratio to nothing")
}

func TestASeriesTellsItsExtent(t *testing.T) {
	s := rounds(3, 0, 1, 2)
	assert.Equal(t, []float64{3, 1, 2}, s.Known())
	assert.Equal(t, []float64{1, 2, 3}, []float64{*s.Min, *s.Median, *s.Max})
	assert.Nil(t, s.Values[1])
}
