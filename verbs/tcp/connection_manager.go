package tcp

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/onesided/rma/internal/logqueue"
	"github.com/onesided/rma/internal/netcall"
	"github.com/onesided/rma/internal/proof"
	"github.com/onesided/rma/verbs"
)

const (
	// purpose is the purpose of the proof of the key. It stays when the version of the frames changes: peers of two
	// versions get as far as the hello, which tells them so.
	purpose = "rma verbs/tcp 1"
	// maxUnproven bounds the connections that are being accepted and have not proved the key.
	maxUnproven = 128
	// maxHelloPayload is the maximum payload of a hello: the identity of the called device, and the hello of Connect.
	maxHelloPayload = identitySize + verbs.MaxHello
)

// connectionManager dials and accepts connections, each in a goroutine with blocking calls and a deadline. It passes
// finished connections to the device.
type connectionManager struct {
	device  *device
	options Options
	limit   time.Duration
	// rest is the first pause between calls. Only tests change it from firstRest.
	rest     time.Duration
	key      []byte
	id       identity
	address  string
	listener net.Listener
	unproven *proof.Room
	log      *logqueue.Limited
	makers   sync.WaitGroup
	spare    spare

	// mu is taken before the device's mutex and never with a connection's.
	mu sync.Mutex
	// accepting are the connections that peers have begun and that are not finished.
	accepting map[net.Conn]struct{}
	closed    bool
}

// Address returns the address of the device.
func (m *connectionManager) Address() string { return m.address }

// acceptPause is between attempts to take what this process has no descriptor for.
const acceptPause = 10 * time.Millisecond

// open begins to accept.
func (m *connectionManager) open() {
	m.makers.Go(func() {
		for {
			conn, err := m.listener.Accept()
			if err == nil {
				err = m.keepSpare(conn)
			}
			switch {
			case errors.Is(err, net.ErrClosed):
				return
			case err != nil:
				// Out of descriptors, most likely: some may come back.
				m.log.Warn("accepting", "accepting", "", netcall.Limited(err))
				m.unproven.MakeRoom()
				time.Sleep(acceptPause)
			case !m.unproven.Admit(conn):
				if !m.device.closed.Load() {
					m.log.Warn("connection rejected", proof.ErrFull.Error(), conn.RemoteAddr().String(), proof.ErrFull)
				}
			case m.keep(conn):
				m.makers.Go(func() { m.receive(conn) })
			default:
				_ = m.unproven.Leave(conn)
			}
		}
	})
}

// keepSpare refills the spare before a connection may need it. If the process has no descriptor for that, keepSpare closes the connection,
// whose peer has proved nothing yet and calls again, and refills the spare by the descriptor that becomes free.
func (m *connectionManager) keepSpare(conn net.Conn) error {
	err := m.spare.refill()
	if err == nil || !netcall.IsShortage(err) {
		return nil
	}
	_ = conn.Close()
	_ = m.spare.refill() // the next connection tries again
	return err
}

// keep records a connection, so that shut can end it. If the device is closed, keep closes the connection and returns
// false.
func (m *connectionManager) keep(conn net.Conn) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		_ = conn.Close()
		return false
	}
	m.accepting[conn] = struct{}{}
	return true
}

// release removes a connection that keep recorded. It returns false if shut has ended the connection.
func (m *connectionManager) release(conn net.Conn) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.accepting, conn)
	return !m.closed
}

// shut ends the connections that are being made.
func (m *connectionManager) shut() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	m.unproven.Close()
	for conn := range m.accepting {
		_ = conn.Close()
	}
	if err := m.listener.Close(); err != nil {
		return fmt.Errorf("tcp: %w", err)
	}
	return nil
}

// wait returns when no goroutine of the connection manager runs any more, except for a Logger that blocks.
func (m *connectionManager) wait() {
	m.makers.Wait()
	m.spare.close()
	m.log.Close()
}

// receive accepts a connection that a peer has begun.
func (m *connectionManager) receive(conn net.Conn) {
	peer := conn.RemoteAddr().String()
	s, id, hello, err := m.handshake(conn)
	open := m.release(conn)
	if err != nil {
		_ = conn.Close()
		if open {
			m.log.Warn("connection rejected", proof.Class(err, ErrProtocol), peer, err)
		}
		return
	}
	c := newConnection(m.device, peer, phaseDialing)
	c.mu.Lock()
	c.start(s, phaseRequested)
	if id != m.id {
		c.reject("another device is at this address now")
	}
	requested := c.phase == phaseRequested
	c.mu.Unlock()
	if requested {
		m.device.queueConnectionRequest(c, hello)
	}
}

// handshake is the handshake of the called side.
func (m *connectionManager) handshake(conn net.Conn) (s stream, id identity, hello []byte, err error) {
	begun := time.Now()
	w, err := m.unproven.Accept(conn, func() (io.ReadWriter, error) {
		if err := conn.SetDeadline(time.Now().Add(m.limit)); err != nil {
			return nil, err
		}
		return m.wrap(conn, "")
	}, m.key, purpose)
	if err != nil {
		return nil, id, nil, fmt.Errorf("tcp: %w", err)
	}
	payload, err := readHello(conn, w)
	if err != nil {
		return nil, id, nil, err
	}
	second, err := m.takeAccepted(conn, begun.Add(m.limit))
	if err != nil {
		return nil, id, nil, err
	}
	return m.take(second, conn, w), identity(payload), payload[len(id):], nil
}

// takeAccepted is takeSocket, by the spare while this process is short of descriptors, and called again until a time if
// that is in use. A peer that has sent its hello takes the end of the connection for the end of this process.
func (m *connectionManager) takeAccepted(conn net.Conn, until time.Time) (*socket, error) {
	for {
		s, err := takeSocket(conn)
		if err == nil || !netcall.IsShortage(err) {
			return s, err
		}
		if s := m.spare.take(conn); s != nil {
			return s, nil
		}
		if time.Now().After(until) {
			return nil, err
		}
		time.Sleep(acceptPause)
	}
}

// readHello reads the hello of a peer that has proved the key.
func readHello(conn net.Conn, w io.ReadWriter) ([]byte, error) {
	var header [paddedSize]byte
	if _, err := io.ReadFull(w, header[:commonSize]); err != nil {
		return nil, fmt.Errorf("tcp: awaiting the hello: %w", err)
	}
	var f frame
	_, err := f.decode(header[:commonSize])
	if err == nil && (f.kind != kindHello || int(f.length) < identitySize) {
		err = fmt.Errorf("%w: %v frame of %d bytes in place of a hello", ErrProtocol, f.kind, f.length)
	}
	if err == nil {
		if _, err := io.ReadFull(w, header[commonSize:]); err != nil {
			return nil, fmt.Errorf("tcp: awaiting the hello: %w", err)
		}
		_, err = f.decode(header[:])
	}
	if err != nil {
		reason := strings.TrimPrefix(err.Error(), ErrProtocol.Error()+": ")
		if theirs := header[0]; theirs != version {
			reason = fmt.Sprintf("it speaks version %d of the frames, this side version %d", version, theirs)
		}
		decline(conn, w, reason)
		return nil, err
	}
	payload := make([]byte, f.length)
	if _, err := io.ReadFull(w, payload); err != nil {
		return nil, fmt.Errorf("tcp: awaiting the hello: %w", err)
	}
	return payload, nil
}

// decline sends a peer that has proved the key the reason why its hello is invalid. A peer of another version learns
// its own version and that of the frame, which is the first byte in every version.
func decline(conn net.Conn, w io.Writer, reason string) {
	f := frame{kind: kindReject, length: uint32(len(reason))}
	answer := make([]byte, paddedSize, paddedSize+len(reason))
	f.encode(answer)
	if _, err := w.Write(append(answer, reason...)); err != nil {
		return
	}
	// Closing a socket with unread bytes discards what it sent.
	if half, ok := conn.(*net.TCPConn); ok && half.CloseWrite() == nil {
		_, _ = io.CopyN(io.Discard, conn, maxPayload)
	}
}

// take passes a finished connection to the engine. s is the socket of conn, which is closed here if takeAccepted has
// not.
func (m *connectionManager) take(s *socket, conn net.Conn, w io.ReadWriter) stream {
	_ = conn.Close()
	tune(s.fd, m.options.Silence, m.options.has(Reno))
	if secure, ok := w.(*secured); ok {
		return secure.engage(s)
	}
	return s
}
