package tcp

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
)

const (
	// readAhead is how many encrypted bytes are read at first.
	readAhead = 16 << 10
	// recordBatch is approximately how much is encrypted before it is sent.
	recordBatch = 64 << 10
	// maxEncrypted bounds the encrypted bytes that have not left. Only a peer that has the keys changed repeatedly, and
	// reads nothing, can reach it.
	maxEncrypted = 1 << 20
)

// prepareTLS checks the configuration and completes it.
func (m *connectionManager) prepareTLS() error {
	config := m.options.TLS.Clone()
	if len(config.Certificates) == 0 && config.GetCertificate == nil && config.GetConfigForClient == nil {
		return argumentError("Open: TLS has no certificate; a device accepts connections and needs one")
	}
	if config.MaxVersion != 0 && config.MaxVersion < tls.VersionTLS13 {
		return argumentError("Open: TLS.MaxVersion is %s, the least allowed is %s", tls.VersionName(config.MaxVersion), tls.VersionName(tls.VersionTLS13))
	}
	config.MinVersion = max(config.MinVersion, tls.VersionTLS13)
	config.DynamicRecordSizingDisabled = true
	// Connections live long, so resumption gains nothing.
	config.SessionTicketsDisabled = true
	m.options.TLS = config
	return nil
}

// wrap puts TLS over a connection if Options.TLS is set. hostPort is the peer that this side calls, empty at the called
// side.
func (m *connectionManager) wrap(conn net.Conn, hostPort string) (io.ReadWriter, error) {
	if m.options.TLS == nil {
		return conn, nil
	}
	carrier := &carrier{Conn: conn}
	secure := &secured{carrier: carrier}
	if hostPort == "" {
		secure.tls = tls.Server(carrier, m.options.TLS)
	} else {
		config := m.options.TLS
		if config.ServerName == "" {
			config = config.Clone()
			config.ServerName, _, _ = net.SplitHostPort(hostPort)
		}
		secure.tls = tls.Client(carrier, config)
	}
	err := secure.tls.Handshake()
	var certificate *tls.CertificateVerificationError
	var alert tls.AlertError
	version := secure.tls.ConnectionState().Version
	switch {
	case err == nil && version < tls.VersionTLS13:
		// The user's configuration can replace itself by another.
		return nil, fmt.Errorf("TLS: the peer speaks %s, the least allowed is %s", tls.VersionName(version), tls.VersionName(tls.VersionTLS13))
	case err == nil:
		return secure, nil
	case errors.As(err, &certificate) || errors.As(err, &alert):
		return nil, fmt.Errorf("TLS: %w", err)
	}
	return nil, fmt.Errorf("TLS, which the peer may not have: %w", err)
}

// encrypted are buffers for batches of records. A connection that sends nothing has none.
var encrypted = sync.Pool{New: func() any { return new(make([]byte, 0, recordBatch+recordBatch/8)) }}

// carrier is what TLS reads from and writes to: first a connection of net, in blocking calls, then a socket, in
// non-blocking ones.
type carrier struct {
	net.Conn
	socket *socket
	// in is what was read ahead. drained: there was no more.
	buffer  []byte
	in      []byte
	drained bool
	// out is what is encrypted and has not left. It lies in a buffer of encrypted, which is lent while out is not
	// empty.
	out    []byte
	lent   *[]byte
	vector [1][]byte
}

// ahead reads what there is, and reports whether that is anything. A TLS read that finds nothing allocates.
func (c *carrier) ahead() (bool, error) {
	if len(c.in) > 0 {
		return true, nil
	}
	n, err := c.socket.read(c.buffer)
	c.in, c.drained = c.buffer[:n], n < len(c.buffer)
	return n > 0, err
}

// errNotNow makes TLS try again later, because it is Temporary.
var errNotNow net.Error = notNow{os.ErrDeadlineExceeded}

type notNow struct{ error }

func (notNow) Timeout() bool   { return true }
func (notNow) Temporary() bool { return true }

func (c *carrier) Read(into []byte) (int, error) {
	if c.socket == nil {
		return c.Conn.Read(into)
	}
	if len(c.in) > 0 {
		n := copy(into, c.in)
		c.in = c.in[n:]
		return n, nil
	}
	if c.drained {
		return 0, errNotNow
	}
	n, err := c.socket.read(into)
	if c.drained = n < len(into); n == 0 && err == nil {
		err = errNotNow
	}
	return n, err
}

func (c *carrier) Write(from []byte) (int, error) {
	if c.socket == nil {
		return c.Conn.Write(from)
	}
	if len(c.out)+len(from) > maxEncrypted {
		return 0, fmt.Errorf("%w: the peer makes this side write and does not read", ErrProtocol)
	}
	if c.lent == nil {
		c.lent = encrypted.Get().(*[]byte)
		c.out = (*c.lent)[:0]
	}
	c.out = append(c.out, from...)
	return len(from), nil
}

// flush sends what is encrypted, as far as possible.
func (c *carrier) flush() error {
	for len(c.out) > 0 {
		c.vector[0] = c.out
		n, err := c.socket.writev(c.vector[:])
		c.vector[0] = nil
		if n == 0 || err != nil {
			return err
		}
		c.out = c.out[:copy(c.out, c.out[n:])]
	}
	c.giveBack()
	return nil
}

// giveBack returns the lent buffer.
func (c *carrier) giveBack() {
	if c.lent != nil {
		encrypted.Put(c.lent)
		c.lent, c.out = nil, nil
	}
}

// secured is the stream of a connection with TLS.
type secured struct {
	tls     *tls.Conn
	carrier *carrier
	// unread: TLS may hold bytes for which there was no room.
	unread bool
	vector [1][]byte
}

// Read and Write are for the handshake.
func (s *secured) Read(into []byte) (int, error)  { return s.tls.Read(into) }
func (s *secured) Write(from []byte) (int, error) { return s.tls.Write(from) }

// ConnectionState returns the state that the proof of the key is bound to.
func (s *secured) ConnectionState() tls.ConnectionState { return s.tls.ConnectionState() }

// engage replaces the connection of net by its socket.
func (s *secured) engage(socket *socket) stream {
	s.carrier.socket = socket
	s.carrier.buffer = make([]byte, readAhead)
	// What the handshake read beyond its end is in TLS.
	s.unread = true
	return s
}

func (s *secured) read(into []byte) (int, error) {
	s.vector[0] = into
	n, err := s.readv(s.vector[:])
	s.vector[0] = nil
	return n, err
}

func (s *secured) readv(into [][]byte) (total int, err error) {
	if some, err := s.carrier.ahead(); !some && !s.unread {
		return 0, err
	}
	s.unread = true
	for _, part := range into {
		for len(part) > 0 {
			n, err := s.tls.Read(part)
			total += n
			part = part[n:]
			switch {
			case err == nil:
			case errors.Is(err, errNotNow):
				s.unread = false
				return total, nil
			default:
				return total, err
			}
		}
	}
	return total, nil
}

func (s *secured) writev(from [][]byte) (total int, err error) {
	if err := s.carrier.flush(); err != nil || s.pending() {
		return 0, err
	}
	for _, part := range from {
		for len(part) > 0 && total < recordBatch {
			n, err := s.tls.Write(part[:min(len(part), recordBatch-total)])
			if err != nil {
				return total, err
			}
			total += n
			part = part[n:]
		}
	}
	return total, s.carrier.flush()
}

func (s *secured) pending() bool { return len(s.carrier.out) > 0 }

func (s *secured) end() {
	// A peer that does not learn of the end from TLS learns it from the socket.
	_ = s.tls.CloseWrite()
	_ = s.carrier.flush()
	s.carrier.socket.end()
}

func (s *secured) close() {
	s.carrier.giveBack()
	s.carrier.socket.close()
}

func (s *secured) descriptor() int { return s.carrier.socket.fd }
