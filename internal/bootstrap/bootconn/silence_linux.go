package bootconn

import (
	"errors"
	"math"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// limitSilence makes the system give up a connection on which bytes were not acknowledged for the time of silence.
// Accepted connections inherit it from their listener.
func (s *Settings) limitSilence(_, _ string, socket syscall.RawConn) error {
	milliseconds := min(s.silence().Milliseconds(), math.MaxInt32)
	var failed error
	err := socket.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(milliseconds))
	})
	return errors.Join(err, os.NewSyscallError("setsockopt", failed))
}
