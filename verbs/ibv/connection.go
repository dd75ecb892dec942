//go:build ibverbs && cgo && linux

package ibv

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/onesided/rma/internal/errtext"
)

// A connection is the TCP connection over which two queue pairs exchange their addresses, and whose end shows each that
// the other is gone. It carries messages of a kind, a length of two bytes, and that many bytes:
//
//	hello    version 1, identity of the called device 8, endpoint, hello of Connect
//	accept   endpoint
//	reject   the reason
//	ready    nothing: requests may be sent to the side that has connected
//	alive    nothing
//	bye      nothing: the sender has ended the connection in order
//
// Numbers are big-endian. Each side sends alive four times per Options.Silence. A side gives the peer up when ten
// deadlines of a tenth of Options.Silence pass during one message. A pause of this process uses up one of them.
type connection struct {
	conn    net.Conn
	peer    string
	silence time.Duration

	mu sync.Mutex
	// ended: this side sends no more.
	ended bool
}

type kind uint8

const (
	kindHello kind = iota + 1
	kindAccept
	kindReject
	kindReady
	kindAlive
	kindBye
	kinds
)

const (
	connectionVersion = 2
	headerSize        = 3
	identitySize      = 8
	maxReason         = 300
	maxPayload        = 512
	// deadlineSteps is the number of deadlines that follow each other in Options.Silence.
	deadlineSteps = 10
)

// newConnection returns the connection over a stream on which the key has been proved.
func newConnection(conn net.Conn, peer string, silence time.Duration) *connection {
	if tcp, ok := conn.(*net.TCPConn); ok {
		// If the system refuses, the time of silence does the same.
		if raw, err := tcp.SyscallConn(); err == nil {
			_ = raw.Control(func(fd uintptr) {
				_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(silence.Milliseconds()))
			})
		}
	}
	_ = conn.SetDeadline(time.Time{})
	return &connection{conn: conn, peer: peer, silence: silence}
}

// stepped reads and writes the parts of one message under a row of short deadlines. If this process is stopped for
// Options.Silence, one deadline of that length is over when it continues. What has arrived meanwhile would then not be
// read.
type stepped struct {
	conn net.Conn
	step time.Duration
	left int
}

func (c *connection) stepped() *stepped {
	return &stepped{c.conn, c.silence / deadlineSteps, deadlineSteps}
}

// Read is for io.ReadFull.
func (s *stepped) Read(into []byte) (n int, err error) {
	for {
		if err = s.conn.SetReadDeadline(time.Now().Add(s.step)); err != nil {
			return 0, err
		}
		if n, err = s.conn.Read(into); n > 0 {
			return n, nil
		}
		if !s.again(err) {
			return 0, err
		}
	}
}

// write writes a message whole.
func (s *stepped) write(message []byte) (err error) {
	for {
		if err = s.conn.SetWriteDeadline(time.Now().Add(s.step)); err != nil {
			return err
		}
		n, err := s.conn.Write(message)
		if message = message[n:]; len(message) == 0 || !s.again(err) {
			return err
		}
	}
}

// again reports whether err is that of a deadline and another one follows.
func (s *stepped) again(err error) bool {
	s.left--
	return errors.Is(err, os.ErrDeadlineExceeded) && s.left > 0
}

// send sends a message. If it cannot be sent whole, no other follows. What the peer has sent is still read.
func (c *connection) send(k kind, payload []byte) {
	message := make([]byte, headerSize, headerSize+len(payload))
	message[0] = byte(k)
	binary.BigEndian.PutUint16(message[1:], uint16(len(payload)))
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ended && c.stepped().write(append(message, payload...)) != nil {
		c.endSending()
	}
}

// endSending ends what this side sends, with mu held. A stream that cannot be ended in one direction is closed.
func (c *connection) endSending() {
	if c.ended {
		return
	}
	c.ended = true
	if tcp, ok := c.conn.(*net.TCPConn); ok {
		// If that fails, the connection has ended, and receive returns an error.
		_ = tcp.CloseWrite()
		return
	}
	_ = c.conn.Close()
}

// errBye is the end of a connection whose other side has left.
var errBye = errors.New("it has ended the connection")

// receive waits for the next message other than alive.
func (c *connection) receive() (kind, []byte, error) {
	for {
		var header [headerSize]byte
		reader := c.stepped()
		if _, err := io.ReadFull(reader, header[:]); err != nil {
			return 0, nil, err
		}
		k, n := kind(header[0]), binary.BigEndian.Uint16(header[1:])
		if k == 0 || k >= kinds || n > maxPayload || (k == kindAlive || k == kindBye) && n != 0 {
			return 0, nil, fmt.Errorf("%w: a message of kind %d and %s", ErrProtocol, k, errtext.Count(n, "byte"))
		}
		switch k {
		case kindAlive:
			continue
		case kindBye:
			return 0, nil, errBye
		}
		payload := make([]byte, n)
		if _, err := io.ReadFull(reader, payload); err != nil {
			return 0, nil, err
		}
		return k, payload, nil
	}
}

// leave sends bye, unless that would block, and closes the connection.
func (c *connection) leave() {
	if conn, ok := c.conn.(syscall.Conn); ok && c.mu.TryLock() {
		// The deadline of an earlier message may be over: raw.Write would not call the function. The function does not
		// wait, so it needs no deadline.
		_ = c.conn.SetWriteDeadline(time.Time{})
		if raw, err := conn.SyscallConn(); err == nil && !c.ended {
			_ = raw.Write(func(fd uintptr) bool {
				_, _ = unix.Write(int(fd), []byte{byte(kindBye), 0, 0})
				return true
			})
		}
		c.mu.Unlock()
	}
	c.end()
}

// end closes the connection. Both sides' receive returns an error.
func (c *connection) end() {
	// Close before Lock: a send that waits holds the mutex, and closing ends it.
	_ = c.conn.Close()
	c.mu.Lock()
	c.ended = true
	c.mu.Unlock()
}

// reject sends the reason why the queue pairs are not connected, as the last message. The connection is closed after
// the peer has closed it: closing with unread bytes discards what was sent.
func (c *connection) reject(reason string) {
	c.send(kindReject, []byte(reason[:min(len(reason), maxReason)]))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.endSending()
}

// connections has the open connections of a device, and keeps them alive.
type connections struct {
	silence time.Duration
	stop    chan struct{}

	mu     sync.Mutex
	all    map[*connection]struct{}
	closed bool
}

func (s *connections) add(c *connection) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.all[c] = struct{}{}
	return true
}

func (s *connections) remove(c *connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, c)
}

// close ends all connections.
func (s *connections) close() {
	s.mu.Lock()
	s.closed = true
	all := s.all
	s.all = nil
	s.mu.Unlock()
	close(s.stop)
	for c := range all {
		c.leave()
	}
}

// keep sends alive on every connection, four times in the time of silence.
func (s *connections) keep() {
	ticker := time.NewTicker(s.silence / 4)
	defer ticker.Stop()
	var now []*connection
	for {
		select {
		case <-s.stop:
			return
		case <-ticker.C:
		}
		now = now[:0]
		s.mu.Lock()
		for c := range s.all {
			now = append(now, c)
		}
		s.mu.Unlock()
		for _, c := range now {
			c.send(kindAlive, nil)
		}
		clear(now)
	}
}
