package main

import (
	"math"
	"math/rand/v2"
)

// zipfian draws ranks 0 to n-1 with probabilities proportional to 1/(rank+1)^theta, theta below 1. The method is that
// of Gray and others (Quickly generating billion-record synthetic databases, 1994).
type zipfian struct {
	n                 float64
	zeta, eta         float64
	alpha, secondFrom float64
}

// theta is the exponent of YCSB.
const theta = 0.99

func newZipfian(n int) *zipfian {
	z := &zipfian{n: float64(n), alpha: 1 / (1 - theta), secondFrom: 1 + math.Pow(0.5, theta)}
	for i := range n {
		z.zeta += 1 / math.Pow(float64(i+1), theta)
	}
	z.eta = (1 - math.Pow(2/z.n, 1-theta)) / (1 - z.secondFrom/z.zeta)
	return z
}

func (z *zipfian) draw(random *rand.Rand) uint64 {
	u := random.Float64()
	switch at := u * z.zeta; {
	case at < 1:
		return 0
	case at < z.secondFrom:
		return min(1, uint64(z.n)-1)
	}
	return min(uint64(z.n*math.Pow(z.eta*u-z.eta+1, z.alpha)), uint64(z.n)-1)
}

// mix is a permutation of 64-bit numbers that leaves no pattern.
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// records draws n records. A hash scrambles them, so that no rank owns all popular ones.
func records(random *rand.Rand, distribution string, total, n int) []uint32 {
	drawn := make([]uint32, n)
	if distribution == uniform {
		for i := range drawn {
			drawn[i] = uint32(random.IntN(total))
		}
		return drawn
	}
	z := newZipfian(total)
	for i := range drawn {
		drawn[i] = uint32(mix(z.draw(random)+0x9e3779b97f4a7c15) % uint64(total))
	}
	return drawn
}
