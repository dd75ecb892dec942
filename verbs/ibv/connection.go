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

// A connection is the TCP connection over which two queue pairs exchange their addresses, and whose end tells each that
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
	// steps is the number of deadlines that follow each other in Options.Silence.
	steps = 10
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

// A patience reads and writes parts of one message with several short deadlines, one after the other. A single deadline
// of Options.Silence would be over when this process continues after it was stopped that long. Then what has arrived
// meanwhile would not be read.
type patience struct {
	conn net.Conn
	step time.Duration
	left int
}

func (l *connection) patience() *patience { return &patience{l.conn, l.silence / steps, steps} }

// Read is for io.ReadFull.
func (p *patience) Read(into []byte) (n int, err error) {
	for {
		if err = p.conn.SetReadDeadline(time.Now().Add(p.step)); err != nil {
			return 0, err
		}
		if n, err = p.conn.Read(into); n > 0 {
			return n, nil
		}
		if !p.again(err) {
			return 0, err
		}
	}
}

// write writes a message whole.
func (p *patience) write(message []byte) (err error) {
	for {
		if err = p.conn.SetWriteDeadline(time.Now().Add(p.step)); err != nil {
			return err
		}
		n, err := p.conn.Write(message)
		if message = message[n:]; len(message) == 0 || !p.again(err) {
			return err
		}
	}
}

// again reports whether err is that of a deadline and another one follows.
func (p *patience) again(err error) bool {
	p.left--
	return errors.Is(err, os.ErrDeadlineExceeded) && p.left > 0
}

// send sends a message. If it cannot be sent whole, no other follows. What the peer has sent is still read.
func (l *connection) send(k kind, payload []byte) {
	message := make([]byte, headerSize, headerSize+len(payload))
	message[0] = byte(k)
	binary.BigEndian.PutUint16(message[1:], uint16(len(payload)))
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ended && l.patience().write(append(message, payload...)) != nil {
		l.endSending()
	}
}

// endSending ends what this side sends, with mu held. A stream that cannot be ended in one direction is closed.
func (l *connection) endSending() {
	if l.ended {
		return
	}
	l.ended = true
	if tcp, ok := l.conn.(*net.TCPConn); ok {
		// If that fails, the connection has ended, and receive returns an error.
		_ = tcp.CloseWrite()
		return
	}
	_ = l.conn.Close()
}

// errBye is the end of a connection whose other side has left.
var errBye = errors.New("it has ended the connection")

// receive waits for the next message other than alive.
func (l *connection) receive() (kind, []byte, error) {
	for {
		var header [headerSize]byte
		reader := l.patience()
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
func (l *connection) leave() {
	if conn, ok := l.conn.(syscall.Conn); ok && l.mu.TryLock() {
		// The deadline of an earlier message may be over: raw.Write would not call the function. The function does not
		// wait, so it needs no deadline.
		_ = l.conn.SetWriteDeadline(time.Time{})
		if raw, err := conn.SyscallConn(); err == nil && !l.ended {
			_ = raw.Write(func(fd uintptr) bool {
				_, _ = unix.Write(int(fd), []byte{byte(kindBye), 0, 0})
				return true
			})
		}
		l.mu.Unlock()
	}
	l.end()
}

// end closes the connection. Both sides' receive returns an error.
func (l *connection) end() {
	// Close before Lock: a send that waits holds the mutex, and closing ends it.
	_ = l.conn.Close()
	l.mu.Lock()
	l.ended = true
	l.mu.Unlock()
}

// reject sends the reason why the queue pairs are not connected, as the last message. The connection is closed after the
// peer has closed it: closing with unread bytes discards what was sent.
func (l *connection) reject(reason string) {
	l.send(kindReject, []byte(reason[:min(len(reason), maxReason)]))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.endSending()
}

// connections are those of a device. A goroutine keeps them alive.
type connections struct {
	silence time.Duration
	stop    chan struct{}

	mu     sync.Mutex
	all    map[*connection]struct{}
	closed bool
}

func (s *connections) add(l *connection) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.all[l] = struct{}{}
	return true
}

func (s *connections) remove(l *connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, l)
}

// close ends all connections.
func (s *connections) close() {
	s.mu.Lock()
	s.closed = true
	all := s.all
	s.all = nil
	s.mu.Unlock()
	close(s.stop)
	for l := range all {
		l.leave()
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
		for l := range s.all {
			now = append(now, l)
		}
		s.mu.Unlock()
		for _, l := range now {
			l.send(kindAlive, nil)
		}
		clear(now)
	}
}
