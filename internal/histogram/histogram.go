package histogram

import (
	"math"
	"math/bits"
	"time"
)

const (
	// Each power of two is divided into 1 << fineBits parts.
	fineBits = 4
	fine     = 1 << fineBits
)

// Buckets is the number of buckets of a Histogram.
const Buckets = (64 - fineBits + 1) * fine

// A Histogram counts durations in buckets that are about 6 % wide. The zero value is empty.
type Histogram struct{ counts [Buckets]uint64 }

// bucketOf returns the bucket of a number of nanoseconds.
func bucketOf(n uint64) int {
	if n < fine {
		return int(n)
	}
	e := bits.Len64(n) - fineBits - 1
	return e<<fineBits + int(n>>e)
}

// most returns the largest number of nanoseconds of a bucket.
func most(bucket int) uint64 {
	if bucket < 2*fine {
		return uint64(bucket)
	}
	e := bucket>>fineBits - 1
	return (uint64(bucket&(fine-1))+fine+1)<<e - 1
}

// Add counts n durations of d.
func (h *Histogram) Add(d time.Duration, n uint64) { h.counts[bucketOf(uint64(max(d, 0)))] += n }

// Counts returns the count of each bucket, for Merge on another rank. The slice is the histogram's own.
func (h *Histogram) Counts() []uint64 { return h.counts[:] }

// Merge adds the Counts of another histogram.
func (h *Histogram) Merge(other []uint64) {
	for i, n := range other {
		h.counts[i] += n
	}
}

// Total returns the number of durations added.
func (h *Histogram) Total() (n uint64) {
	for _, c := range h.counts {
		n += c
	}
	return n
}

// Quantile returns a duration that the given part of all durations did not exceed. It is at most 6 % too long.
func (h *Histogram) Quantile(part float64) time.Duration {
	rank := uint64(math.Ceil(part * float64(h.Total())))
	var seen uint64
	for bucket, n := range h.counts {
		if seen += n; n > 0 && seen >= rank {
			return time.Duration(most(bucket))
		}
	}
	return 0
}
