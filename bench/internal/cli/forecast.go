package cli

import (
	"fmt"
	"math"
	"time"

	"github.com/onesided/rma/bench/internal/stats"
)

// A Forecast estimates the remaining time of a run from the times of its parts so far. Parts of one key do the same
// work. The estimate for a part is the time of the last part of its key, times the recent drift: the ratio of parts
// to the parts of their keys before them. A part without an earlier one of its key has a guess, corrected by the
// error of earlier guesses.
type Forecast struct {
	// left has the planned seconds that are left, by key. lasted has the ratio of the last part's time to its plan.
	left, lasted map[string]float64
	// spent and planned are the sums over the first part of each key.
	spent, planned float64
	// drifts are the last ratios of parts to the parts of their keys before them.
	drifts []float64
}

// mostDrifts is the number of drifts that count.
const mostDrifts = 9

// NewForecast returns a forecast without parts.
func NewForecast() *Forecast {
	return &Forecast{left: make(map[string]float64), lasted: make(map[string]float64)}
}

// Add adds a part to the remaining ones. seconds is a guess of its time.
func (f *Forecast) Add(key string, seconds float64) { f.left[key] += seconds }

// Done records that a planned part has ended, and its time.
func (f *Forecast) Done(key string, seconds float64, took time.Duration) {
	f.left[key] -= seconds
	last, known := f.lasted[key]
	switch {
	case !known:
		f.spent, f.planned = f.spent+took.Seconds(), f.planned+seconds
	case last > 0:
		f.drifts = append(f.drifts, took.Seconds()/seconds/last)
		f.drifts = f.drifts[max(0, len(f.drifts)-mostDrifts):]
	}
	f.lasted[key] = took.Seconds() / seconds
}

// Drop removes all remaining parts of a key.
func (f *Forecast) Drop(key string) { delete(f.left, key) }

// Remaining returns the estimated time of the remaining parts.
func (f *Forecast) Remaining() time.Duration {
	fault, drift, sum := 1.0, 1.0, 0.0
	if f.planned > 0 {
		fault = f.spent / f.planned
	}
	if len(f.drifts) > 0 {
		drift = stats.Median(f.drifts)
	}
	for key, seconds := range f.left {
		if last, known := f.lasted[key]; known {
			sum += seconds * last * drift
		} else {
			sum += seconds * fault
		}
	}
	return time.Duration(math.Max(sum, 0) * float64(time.Second))
}

// Suffix returns the estimate as the end of a line of progress. It is "" before the first part has ended.
func (f *Forecast) Suffix() string {
	if len(f.lasted) == 0 {
		return ""
	}
	return fmt.Sprintf("; about %v left", f.Remaining().Round(time.Second))
}
