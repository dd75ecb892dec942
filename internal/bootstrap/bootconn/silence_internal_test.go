package bootconn

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// An idle connection is given up at the end of the silence. The second of two probes comes before that, so one lost
// probe does not end the connection.
func TestTwoQuestions(t *testing.T) {
	for _, silence := range []time.Duration{0, time.Millisecond, time.Second, 2 * time.Second, 3 * time.Second, 3500 * time.Millisecond, 4 * time.Second, 5 * time.Second, time.Minute, time.Hour, 1000 * time.Hour, math.MaxInt64} {
		s := Settings{Silence: silence}
		allowed := s.silence()
		require.GreaterOrEqual(t, allowed, silence)
		c := s.keepAlive()
		for _, d := range []time.Duration{c.Idle, c.Interval} {
			require.GreaterOrEqual(t, d, time.Second)
			require.LessOrEqual(t, d, longestKeepAlive)
			require.Zero(t, d%time.Second, "the system rounds it")
		}
		require.Equal(t, 2, c.Count)
		second, end := c.Idle+c.Interval, c.Idle+2*c.Interval
		require.Less(t, second, allowed, "silence %v", silence)
		if allowed <= longestKeepAlive {
			require.GreaterOrEqual(t, end, allowed, "silence %v", silence)
			require.Less(t, end, allowed+time.Second, "silence %v", silence)
		}
	}
}
