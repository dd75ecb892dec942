package tcp

import (
	"time"

	"golang.org/x/sys/unix"
)

// tune makes the system give a connection up when sent data is not acknowledged, or not read, for the limit. If reno is
// set, a connection within the machine uses reno. Package net has set TCP_NODELAY.
func tune(fd int, limit time.Duration, reno bool) {
	// If the system refuses, the device's own clock does the same, a little later.
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(limit.Milliseconds()))
	if reno && within(fd) {
		// If the system refuses, the connection keeps the default.
		_ = unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, "reno")
	}
}

// duplicateOnto makes one descriptor, which is open, another one of the file of a first.
func duplicateOnto(first, second int) error { return unix.Dup3(first, second, unix.O_CLOEXEC) }

// within reports whether a connection is within the machine: from an address to itself, because that is how the system
// connects a machine with itself.
func within(fd int) bool {
	near, err := unix.Getsockname(fd)
	if err != nil {
		return false
	}
	far, err := unix.Getpeername(fd)
	if err != nil {
		return false
	}
	switch near := near.(type) {
	case *unix.SockaddrInet4:
		far, ok := far.(*unix.SockaddrInet4)
		return ok && near.Addr == far.Addr
	case *unix.SockaddrInet6:
		far, ok := far.(*unix.SockaddrInet6)
		return ok && near.Addr == far.Addr && near.ZoneId == far.ZoneId
	}
	return false
}
