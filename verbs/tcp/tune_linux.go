package tcp

import (
	"time"

	"golang.org/x/sys/unix"
)

// tune makes the system give a connection up when what was sent is not acknowledged, or
// not read, for the limit. net has set TCP_NODELAY.
func tune(fd int, limit time.Duration) {
	// Where it is refused the device's own clock does the same, a little later.
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(limit.Milliseconds()))
}
