package main

import (
	"fmt"
	"math"
	"time"
)

// A forecast is how long the rest of a run takes, by how long its parts took so far on this machine. Parts of one key
// do the same work: a part takes as long as the last one of its key, and as much longer as parts that have followed
// others of their keys lately took than those. Where there is none of its key it is planned, by a guess that is
// corrected as the guesses before were wrong.
type forecast struct {
	// left are the seconds planned of what is left, by key, and lasted how many times what is planned the last part took.
	left, lasted map[string]float64
	// spent and planned are of the first part of each key.
	spent, planned float64
	// drifts are what parts took to what those before them of their keys took, of the last few.
	drifts []float64
}

// mostDrifts is how many drifts count.
const mostDrifts = 9

func newForecast() *forecast {
	return &forecast{left: make(map[string]float64), lasted: make(map[string]float64)}
}

// plan adds a part to what is left. seconds is a guess of how long it takes.
func (f *forecast) plan(key string, seconds float64) { f.left[key] += seconds }

// took records that a planned part has ended, and how long it took.
func (f *forecast) took(key string, seconds float64, took time.Duration) {
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

// drop removes all that is left of a key.
func (f *forecast) drop(key string) { delete(f.left, key) }

// rest is how long what is left takes.
func (f *forecast) rest() time.Duration {
	fault, drift, sum := 1.0, 1.0, 0.0
	if f.planned > 0 {
		fault = f.spent / f.planned
	}
	if len(f.drifts) > 0 {
		drift = median(f.drifts)
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

// says is the rest behind a line of progress, "" before the first part, if all are planned alike.
func (f *forecast) says() string {
	if len(f.lasted) == 0 {
		return ""
	}
	return fmt.Sprintf("; about %v left", f.rest().Round(time.Second))
}
