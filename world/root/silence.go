package root

import (
	"net"
	"time"
)

// silence is how long a connection lives whose other host does not answer. It is
// changed only by processes that test it.
var silence = 10 * time.Second

// keepAlive asks on an idle connection whether the other host is there. It also keeps
// those who translate addresses between the two from forgetting the connection.
//
// While bytes are on their way the system does not ask but sends them again, for many
// minutes: that is limitSilence's part.
func keepAlive() net.KeepAliveConfig {
	return net.KeepAliveConfig{Enable: true, Idle: silence / 2, Interval: silence / 4, Count: 2}
}
