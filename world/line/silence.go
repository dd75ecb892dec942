package line

import (
	"net"
	"time"
)

// DefaultSilence is how long a connection lives whose other host does not answer,
// unless the settings say so.
const DefaultSilence = 10 * time.Second

// longestKeepAlive is the most that Linux takes.
const longestKeepAlive = 32767 * time.Second

// silence is the settings', or the default.
func (s *Settings) silence() time.Duration {
	if s.Silence == 0 {
		return DefaultSilence
	}
	return s.Silence
}

// keepAlive asks on an idle connection whether the other host is there. It also keeps
// those who translate addresses between the two from forgetting the connection. The
// system counts in whole seconds here, so that the shortest silence is about two.
//
// While bytes are on their way the system does not ask but sends them again, for many
// minutes: that is limitSilence's part.
func (s *Settings) keepAlive() net.KeepAliveConfig {
	allowed := func(d time.Duration) time.Duration { return min(max(d, time.Second), longestKeepAlive) }
	return net.KeepAliveConfig{Enable: true, Idle: allowed(s.silence() / 2), Interval: allowed(s.silence() / 4), Count: 2}
}
