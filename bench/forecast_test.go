package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestForecastIsOfWhatPartsTook(t *testing.T) {
	f := newForecast()
	for range 3 {
		f.plan("short", 1)
		f.plan("long", 1)
	}
	assert.Equal(t, 6*time.Second, f.rest(), "nothing is known but the plan")
	assert.Empty(t, f.says())
	f.took("short", 1, 2*time.Second)
	assert.Equal(t, 10*time.Second, f.rest(), "the plan is corrected for all")
	f.took("long", 1, 10*time.Second)
	assert.Equal(t, 24*time.Second, f.rest(), "each by its own")
	assert.Equal(t, "; about 24s left", f.says())
}

// The machine gets busy, so that all takes three times as long, and is quiet again.
func TestForecastFollowsTheLoad(t *testing.T) {
	keys := []string{"a", "b", "c", "d", "e"}
	f := newForecast()
	for range 8 {
		for i, key := range keys {
			f.plan(key, float64(1+i%2))
		}
	}
	round := func(load float64) {
		for i, key := range keys {
			f.took(key, float64(1+i%2), time.Duration(load*float64(i+1)*float64(time.Second)))
		}
	}
	round(1)
	assert.InDelta(t, 7*15, f.rest().Seconds(), 1e-6)
	for i, key := range keys[:3] {
		f.took(key, float64(1+i%2), time.Duration(3*float64(i+1)*float64(time.Second)))
	}
	assert.Greater(t, f.rest().Seconds(), 2.5*(6*15), "what has not been measured since takes longer, too")
	for i, key := range keys[3:] {
		f.took(key, float64(1+(i+3)%2), time.Duration(3*float64(i+4)*float64(time.Second)))
	}
	round(3)
	round(3)
	assert.InDelta(t, 3*4*15, f.rest().Seconds(), 1e-6)
	round(1)
	round(1)
	assert.InDelta(t, 2*15, f.rest().Seconds(), 1e-6)
	round(1)
	round(1)
	assert.Zero(t, f.rest())
}

// What is dropped says nothing of the others either.
func TestForecastOfWhatIsDropped(t *testing.T) {
	f := newForecast()
	f.plan("slow", 3)
	f.plan("quick", 3)
	f.took("quick", 1, 2*time.Second)
	f.drop("slow")
	assert.Equal(t, 4*time.Second, f.rest())
	f.drop("quick")
	assert.Zero(t, f.rest())
}

// A part that stands still until its time is over says nothing of the others.
func TestForecastSurvivesAPartThatStandsStill(t *testing.T) {
	f := newForecast()
	keys := []string{"a", "b", "c", "d", "e"}
	for range 3 {
		for _, key := range keys {
			f.plan(key, 1)
		}
	}
	for range 2 {
		for _, key := range keys {
			f.took(key, 1, time.Second)
		}
	}
	f.took("a", 1, 2*time.Minute)
	f.took("b", 1, time.Second)
	f.took("c", 1, time.Second)
	assert.InDelta(t, 2, f.rest().Seconds(), 1e-6)
}
