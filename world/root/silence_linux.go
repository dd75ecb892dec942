package root

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// limitSilence has the system give up a connection on which bytes were not acknowledged
// for that long. Connections that are accepted have it from their listener.
func limitSilence(_, _ string, socket syscall.RawConn) error {
	var failed error
	err := socket.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(silence.Milliseconds()))
	})
	return errors.Join(err, os.NewSyscallError("setsockopt", failed))
}
