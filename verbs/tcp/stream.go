package tcp

import (
	"fmt"
	"net"
	"os"
	"sync"
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
	return takeAs(conn, func(first int) (int, error) { return unix.FcntlInt(uintptr(first), unix.F_DUPFD_CLOEXEC, 0) })
}

// takeAs is takeSocket with the second descriptor that duplicate makes. It is of the same socket as the first, and non-blocking like that.
func takeAs(conn net.Conn, duplicate func(first int) (second int, err error)) (*socket, error) {
	inner, ok := conn.(syscall.Conn)
	if !ok {
		return nil, fmt.Errorf("tcp: a %T is no socket", conn)
	}
	raw, err := inner.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("tcp: %w", err)
	}
	var second int
	var refused error
	err = raw.Control(func(first uintptr) { second, refused = duplicate(int(first)) })
	if err != nil || refused != nil {
		return nil, fmt.Errorf("tcp: a second descriptor of a socket: %w", firstOf(err, refused))
	}
	return &socket{fd: second}, nil
}

// A spare is a descriptor that a connection manager keeps open for a socket that it takes while the process has no
// other. The zero spare is closed.
type spare struct {
	mu   sync.Mutex
	fd   int
	open bool
}

// refill opens the spare if it is closed.
func (s *spare) refill() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reopen()
}

// reopen is refill with the mutex.
func (s *spare) reopen() error {
	if s.open {
		return nil
	}
	fd, err := unix.Open(os.DevNull, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("tcp: a spare descriptor: %w", err)
	}
	s.fd, s.open = fd, true
	return nil
}

// take is takeSocket with the spare as the second descriptor, nil if that cannot be. It closes the connection, and the descriptor that
// becomes free is the next spare, unless another goroutine opens something first.
//
// The system replaces the file of the spare in one step: the number is never free in between, so nothing else can take it.
func (s *spare) take(conn net.Conn) *socket {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.open {
		return nil
	}
	taken, err := takeAs(conn, func(first int) (int, error) { return s.fd, duplicateOnto(first, s.fd) })
	if err != nil {
		return nil
	}
	s.open = false
	_ = conn.Close()
	_ = s.reopen() // a later refill tries again
	return taken
}

func (s *spare) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open {
		_ = unix.Close(s.fd)
		s.open = false
	}
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
		raceorder.Acquire()
	}
	return n, err
}

func (s *socket) readv(into [][]byte) (int, error) {
	n, err := s.vector.read(s.fd, into)
	if n > 0 {
		raceorder.Acquire()
	}
	return n, err
}

func (s *socket) writev(from [][]byte) (int, error) {
	raceorder.Release()
	return s.vector.write(s.fd, from)
}

func (s *socket) pending() bool   { return false }
func (s *socket) end()            { _ = unix.Shutdown(s.fd, unix.SHUT_WR) }
func (s *socket) close()          { _ = unix.Close(s.fd) }
func (s *socket) descriptor() int { return s.fd }
