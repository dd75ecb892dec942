package stats

import "slices"

// A Series is one figure over the rounds of a comparison.
type Series struct {
	Median *float64 `json:"median"`
	Min    *float64 `json:"min,omitempty"`
	Max    *float64 `json:"max,omitempty"`
	// Values has one value for each round, so that values of one round can be compared. null is a round without a
	// value.
	Values []*float64 `json:"values"`
}

// NewSeries returns a series without values.
func NewSeries(rounds int) Series { return Series{Values: make([]*float64, rounds)} }

// Set enters the value of a round.
func (s *Series) Set(round int, value float64) {
	s.Values[round] = &value
	known := s.Known()
	least, most, middle := slices.Min(known), slices.Max(known), Median(known)
	s.Min, s.Max, s.Median = &least, &most, &middle
}

// Known returns the values of the rounds that have one.
func (s *Series) Known() []float64 {
	var known []float64
	for _, v := range s.Values {
		if v != nil {
			known = append(known, *v)
		}
	}
	return known
}

// Ratios returns the ratios of a to b within each round. A round has no value if one of them has none, or if b is 0. b
// must have as many rounds as a.
func Ratios(a, b Series) Series {
	ratios := NewSeries(len(a.Values))
	for round, v := range a.Values {
		if w := b.Values[round]; v != nil && w != nil && *w != 0 {
			ratios.Set(round, *v / *w)
		}
	}
	return ratios
}

// Median returns the median of values, which must not be empty. For an even number it is the mean of the two in the
// middle.
func Median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 0 {
		return (sorted[middle-1] + sorted[middle]) / 2
	}
	return sorted[middle]
}
