package logqueue

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What happens again and again is told once a minute, with how often it was.
func TestWarnings(t *testing.T) {
	var w warnings
	began := time.Now()
	at := func(second int) time.Time { return began.Add(time.Duration(second) * time.Second) }
	told := make(map[int]int)
	for second := range 200 {
		for range 3 {
			if tell, untold := w.due(subject{"key", "10.0.0.1"}, at(second)); tell {
				told[second] = untold
			}
		}
	}
	require.Equal(t, map[int]int{0: 0, 60: 179, 120: 179, 180: 179}, told)
	for _, about := range []subject{{"key", "10.0.0.2"}, {"version", "10.0.0.1"}} {
		tell, untold := w.due(about, at(200))
		require.True(t, tell, "%v has not happened before", about)
		require.Zero(t, untold)
	}
	require.Equal(t, 59, w.rest())
	require.Zero(t, w.rest())
}

// Strangers of any number of hosts cannot have more told than there is room for, and
// none of it is lost in the count.
func TestWarningsOfManyHosts(t *testing.T) {
	var w warnings
	began := time.Now()
	told, untold := 0, 0
	const minutes, hosts = 5, 1000
	for minute := range minutes {
		for i := range hosts {
			tell, more := w.due(subject{"key", fmt.Sprint(minute, " ", i)}, began.Add(time.Duration(minute)*warningPause))
			if untold += more; tell {
				told++
			}
			require.LessOrEqual(t, len(w.kept), maxSubjects+1)
		}
	}
	require.LessOrEqual(t, told, minutes*(maxSubjects+1))
	require.GreaterOrEqual(t, told, minutes*maxSubjects)
	require.Equal(t, minutes*hosts, told+untold+w.rest())
}
