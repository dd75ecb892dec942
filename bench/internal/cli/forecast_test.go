package cli

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestForecastIsOfWhatPartsTook(t *testing.T) {
	f := NewForecast()
	for range 3 {
		f.Add("short", 1)
		f.Add("long", 1)
	}
	assert.Equal(t, 6*time.Second, f.Remaining(), "nothing is known but the plan")
	assert.Empty(t, f.Suffix())
	f.Done("short", 1, 2*time.Second)
	assert.Equal(t, 10*time.Second, f.Remaining(), "the plan is corrected for all")
	f.Done("long", 1, 10*time.Second)
	assert.Equal(t, 24*time.Second, f.Remaining(), "each by its own")
	assert.Equal(t, "; about 24s left", f.Suffix())
}

// The machine gets busy, so that all takes three times as long, and is quiet again.
func TestForecastFollowsTheLoad(t *testing.T) {
	keys := []string{"a", "b", "c", "d", "e"}
	f := NewForecast()
	for range 8 {
		for i, key := range keys {
			f.Add(key, float64(1+i%2))
		}
	}
	round := func(load float64) {
		for i, key := range keys {
			f.Done(key, float64(1+i%2), time.Duration(load*float64(i+1)*float64(time.Second)))
		}
	}
	round(1)
	assert.InDelta(t, 7*15, f.Remaining().Seconds(), 1e-6)
	for i, key := range keys[:3] {
		f.Done(key, float64(1+i%2), time.Duration(3*float64(i+1)*float64(time.Second)))
	}
	assert.Greater(t, f.Remaining().Seconds(), 2.5*(6*15), "what has not been measured since takes longer, too")
	for i, key := range keys[3:] {
		f.Done(key, float64(1+(i+3)%2), time.Duration(3*float64(i+4)*float64(time.Second)))
	}
	round(3)
	round(3)
	assert.InDelta(t, 3*4*15, f.Remaining().Seconds(), 1e-6)
	round(1)
	round(1)
	assert.InDelta(t, 2*15, f.Remaining().Seconds(), 1e-6)
	round(1)
	round(1)
	assert.Zero(t, f.Remaining())
}

// What is dropped says nothing of the others either.
func TestForecastOfWhatIsDropped(t *testing.T) {
	f := NewForecast()
	f.Add("slow", 3)
	f.Add("quick", 3)
	f.Done("quick", 1, 2*time.Second)
	f.Drop("slow")
	assert.Equal(t, 4*time.Second, f.Remaining())
	f.Drop("quick")
	assert.Zero(t, f.Remaining())
}

// A part that stands still until its time is over says nothing of the others.
func TestForecastSurvivesAPartThatStandsStill(t *testing.T) {
	f := NewForecast()
	keys := []string{"a", "b", "c", "d", "e"}
	for range 3 {
		for _, key := range keys {
			f.Add(key, 1)
		}
	}
	for range 2 {
		for _, key := range keys {
			f.Done(key, 1, time.Second)
		}
	}
	f.Done("a", 1, 2*time.Minute)
	f.Done("b", 1, time.Second)
	f.Done("c", 1, time.Second)
	assert.InDelta(t, 2, f.Remaining().Seconds(), 1e-6)
}
