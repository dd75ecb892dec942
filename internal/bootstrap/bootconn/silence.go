package bootconn

import (
	"net"
	"time"
)

// DefaultSilence is the time for which a connection lives whose other host does not answer, unless the settings say
// otherwise.
const DefaultSilence = 10 * time.Second

// longestKeepAlive is the greatest value that Linux accepts.
const longestKeepAlive = 32767 * time.Second

// shortestSilence has room for two probes: the system counts in whole seconds, and the packet of one probe may be
// lost.
const shortestSilence = 3 * time.Second

// silence returns the silence of the settings, or the default.
func (s *Settings) silence() time.Duration {
	if s.Silence == 0 {
		return DefaultSilence
	}
	return max(s.Silence, shortestSilence)
}

// keepAlive probes an idle connection twice before its silence is over. That also keeps address translators between
// the hosts from forgetting the connection.
//
// While bytes are unacknowledged the system does not probe but resends them, for many minutes. limitSilence bounds
// that.
func (s *Settings) keepAlive() net.KeepAliveConfig {
	const questions = 2
	seconds := (min(s.silence(), longestKeepAlive) + time.Second - 1) / time.Second
	interval := seconds / (questions + 1)
	return net.KeepAliveConfig{Enable: true, Idle: (seconds - questions*interval) * time.Second, Interval: interval * time.Second, Count: questions}
}
