package bootconn

import (
	"net"
	"time"
)

// DefaultSilence is how long a connection lives whose other host does not answer,
// unless the settings say so.
const DefaultSilence = 10 * time.Second

// longestKeepAlive is the most that Linux takes.
const longestKeepAlive = 32767 * time.Second

// shortestSilence is what fits two questions that come to no answer: the system counts in whole seconds. Of one alone
// the packet may be lost.
const shortestSilence = 3 * time.Second

// silence is the settings', or the default.
func (s *Settings) silence() time.Duration {
	if s.Silence == 0 {
		return DefaultSilence
	}
	return max(s.Silence, shortestSilence)
}

// keepAlive asks on an idle connection whether the other host is there, twice before its silence is over. It also keeps
// those who translate addresses between the two from forgetting the connection.
//
// While bytes are on their way the system does not ask but sends them again, for many
// minutes: that is limitSilence's part.
func (s *Settings) keepAlive() net.KeepAliveConfig {
	const questions = 2
	seconds := (min(s.silence(), longestKeepAlive) + time.Second - 1) / time.Second
	interval := seconds / (questions + 1)
	return net.KeepAliveConfig{Enable: true, Idle: (seconds - questions*interval) * time.Second, Interval: interval * time.Second, Count: questions}
}
