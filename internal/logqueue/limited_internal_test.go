package logqueue

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A repeated warning is logged once a minute, with the number of omitted ones.
func TestWarnings(t *testing.T) {
	var w warnings
	began := time.Now()
	at := func(second int) time.Time { return began.Add(time.Duration(second) * time.Second) }
	logged := make(map[int]int)
	for second := range 200 {
		for range 3 {
			if due, omitted := w.due(subject{"key", "10.0.0.1"}, at(second)); due {
				logged[second] = omitted
			}
		}
	}
	require.Equal(t, map[int]int{0: 0, 60: 179, 120: 179, 180: 179}, logged)
	for _, about := range []subject{{"key", "10.0.0.2"}, {"version", "10.0.0.1"}} {
		due, omitted := w.due(about, at(200))
		require.True(t, due, "%v has not happened before", about)
		require.Zero(t, omitted)
	}
	require.Equal(t, 59, w.rest())
	require.Zero(t, w.rest())
}

// Whatever the number of hosts, the number of logged warnings is bounded by the number of subjects, and every warning
// is counted.
func TestWarningsOfManyHosts(t *testing.T) {
	var w warnings
	began := time.Now()
	logged, omitted := 0, 0
	const minutes, hosts = 5, 1000
	for minute := range minutes {
		for i := range hosts {
			due, more := w.due(subject{"key", fmt.Sprint(minute, " ", i)}, began.Add(time.Duration(minute)*warningPause))
			if omitted += more; due {
				logged++
			}
			require.LessOrEqual(t, len(w.kept), maxSubjects+1)
		}
	}
	require.LessOrEqual(t, logged, minutes*(maxSubjects+1))
	require.GreaterOrEqual(t, logged, minutes*maxSubjects)
	require.Equal(t, minutes*hosts, logged+omitted+w.rest())
}
