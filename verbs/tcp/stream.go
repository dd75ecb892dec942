package tcp

import (
	"fmt"
	"net"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/onesided/rma/internal/raceorder"
)

// A stream is what a connection reads from and writes to, without ever waiting. Its methods are called under the
// connection's mutex.
type stream interface {
	// read fills a slice and returns the number of bytes read. Fewer than the slice has room for means that there is no
	// more now. The end is io.EOF.
	read(into []byte) (int, error)
	// readv is read into several slices.
	readv(into [][]byte) (int, error)
	// writev writes bytes of several slices and returns how many it took.
	writev(from [][]byte) (int, error)
	// pending reports whether bytes that writev took have not left yet. A writev of nothing tries again.
	pending() bool
	// end announces that no more is written.
	end()
	close()
	descriptor() int
}

// maxVectors is the maximum number of slices of one system call.
const maxVectors = 64

// socket is the stream of a TCP connection.
type socket struct {
	fd     int
	vector vector
}

// takeSocket takes the socket of a connection out of net and Go's poller. The connection stays usable, and must be
// closed separately.
func takeSocket(conn net.Conn) (*socket, error) {
	inner, ok := conn.(syscall.Conn)
	if !ok {
		return nil, fmt.Errorf("tcp: a %T is no socket", conn)
	}
	raw, err := inner.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("tcp: %w", err)
	}
	// The second descriptor is of the same socket. It is non-blocking like the first.
	var fd int
	var duplicate error
	err = raw.Control(func(first uintptr) {
		fd, duplicate = unix.FcntlInt(first, unix.F_DUPFD_CLOEXEC, 0)
	})
	if err != nil || duplicate != nil {
		return nil, fmt.Errorf("tcp: a second descriptor of a socket: %w", firstOf(err, duplicate))
	}
	return &socket{fd: fd}, nil
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *socket) read(into []byte) (int, error) {
	n, err := readNow(s.fd, into)
	if n > 0 {
		raceorder.AfterHearing()
	}
	return n, err
}

func (s *socket) readv(into [][]byte) (int, error) {
	n, err := s.vector.read(s.fd, into)
	if n > 0 {
		raceorder.AfterHearing()
	}
	return n, err
}

func (s *socket) writev(from [][]byte) (int, error) {
	raceorder.BeforeTelling()
	return s.vector.write(s.fd, from)
}

func (s *socket) pending() bool   { return false }
func (s *socket) end()            { _ = unix.Shutdown(s.fd, unix.SHUT_WR) }
func (s *socket) close()          { _ = unix.Close(s.fd) }
func (s *socket) descriptor() int { return s.fd }
