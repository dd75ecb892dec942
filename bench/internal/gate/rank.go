package gate

import (
	"math"
	"slices"
)

// A Sample holds values that are independent and, without the shift that is sought, as likely to be x as -x.
type Sample struct {
	n     int
	means []float64 // of all pairs of values and of each value with itself, in ascending order
}

// SignedRank returns the sample of values, for bounds of their shift by Wilcoxon's signed-rank statistic.
func SignedRank(values []float64) *Sample {
	s := &Sample{n: len(values), means: make([]float64, 0, pairs(len(values)))}
	for i, v := range values {
		for _, w := range values[i:] {
			s.means = append(s.means, v/2+w/2)
		}
	}
	slices.Sort(s.means)
	return s
}

// Shift returns the estimate of Hodges and Lehmann: the median of the means. It is NaN without values.
func (s *Sample) Shift() float64 {
	n := len(s.means)
	if n == 0 {
		return math.NaN()
	}
	return s.means[(n-1)/2]/2 + s.means[n/2]/2
}

// Lower returns a bound that is above the true shift with at most the given probability. It is -Inf if the sample is
// too small for any other.
func (s *Sample) Lower(probability float64) float64 {
	if k := critical(s.n, probability); k > 0 {
		return s.means[k-1]
	}
	return math.Inf(-1)
}

// Upper returns a bound that is below the true shift with at most the given probability. It is Inf if the sample is
// too small for any other.
func (s *Sample) Upper(probability float64) float64 {
	if k := critical(s.n, probability); k > 0 {
		return s.means[len(s.means)-k]
	}
	return math.Inf(1)
}

// enough returns the least number of values that have bounds of this probability.
func enough(probability float64) int {
	return max(1, int(math.Ceil(-math.Log2(probability))))
}

// pairs returns the number of pairs of n values, including those of a value and itself. It is also the sum of the
// ranks 1 to n.
func pairs(n int) int { return n * (n + 1) / 2 }

// critical returns the largest k for which a sum of signed ranks is below k with at most this probability. The sum is
// that of the ranks of positive values, each of which is positive with probability 1/2. The k-th of the means is
// above the shift exactly when fewer than k means are below it or at it. Their number has the distribution of that
// sum.
func critical(n int, probability float64) int {
	sums := make([]float64, pairs(n)+1)
	sums[0] = 1
	for rank := 1; rank <= n; rank++ {
		for sum := pairs(rank); sum >= 0; sum-- {
			without := sums[sum] / 2
			if sum >= rank {
				without += sums[sum-rank] / 2
			}
			sums[sum] = without
		}
	}
	below := 0.0
	for k, p := range sums {
		if below += p; below > probability {
			return k
		}
	}
	return len(sums)
}
