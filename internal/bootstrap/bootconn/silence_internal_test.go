package bootconn

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A connection that is idle is given up after the silence, and not because one question comes to no answer.
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
