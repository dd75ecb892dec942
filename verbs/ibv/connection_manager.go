//go:build ibverbs && cgo && linux

package ibv

import (
	"context"
	cryptorand "crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/internal/netcall"
	"github.com/onesided/rma/internal/proof"
	"github.com/onesided/rma/verbs"
)

const (
	// purpose is the purpose of the proof of the key.
	purpose = "rma verbs/ibv 1"
	// maxUnproven bounds the connections that are being accepted and have not proved the key.
	maxUnproven = 128
	// A peer that ends the connection before the key is proved, as a full one does, is called again, at most maxCalls
	// times within the limit of a handshake. The pauses grow from firstRest to longestRest.
	maxCalls    = 16
	firstRest   = 50 * time.Millisecond
	longestRest = 400 * time.Millisecond
	// anonymousKeySize is the length of the key that stands for no key.
	anonymousKeySize = 32
)

// A connectionManager makes the connections of a device.
type connectionManager struct {
	device      *device
	limit       time.Duration
	key         []byte
	id          [identitySize]byte
	address     string
	listener    net.Listener
	unproven    *proof.Room
	connections connections
	eventLog    eventLog
	// working are the goroutines of the manager and of its connections.
	working sync.WaitGroup
	// leaving ends the calls that are being made.
	leaving context.Context
	leave   context.CancelFunc
}

// open listens, and sets the device's address.
func (m *connectionManager) open(options *Options) error {
	m.key = options.Key
	if n := len(m.key); n != 0 && (n < proof.MinKey || n > proof.MaxKey) {
		return argumentError("Open: Key has %s, allowed are %d to %d, or none", errtext.Count(n, "byte"), proof.MinKey, proof.MaxKey)
	}
	listener, err := netcall.Listen(options.Listen)
	if err != nil {
		return fmt.Errorf("ibv: Open: %w", netcall.Limited(err))
	}
	m.listener = listener
	if err := m.name(options); err != nil {
		_ = listener.Close()
		return err
	}
	m.unproven = proof.NewRoom(maxUnproven)
	m.connections = connections{silence: options.Silence, stop: make(chan struct{}), all: make(map[*connection]struct{})}
	m.leaving, m.leave = context.WithCancel(context.Background())
	return nil
}

func (m *connectionManager) name(options *Options) error {
	bound, err := netip.ParseAddrPort(m.listener.Addr().String())
	if err != nil {
		return fmt.Errorf("ibv: Open: %w", err)
	}
	if len(m.key) == 0 {
		if !bound.Addr().IsLoopback() {
			return argumentError("Open: Listen is %s, where other machines connect, and Key is empty; set Key, or listen on a loopback address", bound)
		}
		m.key = make([]byte, anonymousKeySize)
	}
	host, number := bound.Addr().String(), fmt.Sprint(bound.Port())
	if options.Advertise != "" {
		host = options.Advertise
		if h, p, err := net.SplitHostPort(host); err == nil {
			host, number = h, p
		}
	} else if bound.Addr().IsUnspecified() {
		return argumentError("Open: Listen is %s, which names no host that peers could connect to; set Advertise", bound)
	}
	_, _ = cryptorand.Read(m.id[:]) // it never fails
	m.address = net.JoinHostPort(host, number) + "/" + hex.EncodeToString(m.id[:])
	if _, _, err := parseAddress(m.address); err != nil || strings.ContainsFunc(m.address, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return argumentError("Open: Advertise is %q, must be a host, or a host and a port", options.Advertise)
	}
	return nil
}

// parseAddress takes an address of a device apart.
func parseAddress(address string) (hostPort string, id [identitySize]byte, err error) {
	hostPort, text, ok := strings.Cut(address, "/")
	if ok && len(address) <= 256 && len(text) == hex.EncodedLen(len(id)) {
		if _, _, err := net.SplitHostPort(hostPort); err == nil {
			if _, err := hex.Decode(id[:], []byte(text)); err == nil {
				return hostPort, id, nil
			}
		}
	}
	return "", id, argumentError("Connect: the address %.256q, an address of this device is host:port/%d hexadecimal digits", address, hex.EncodedLen(len(id)))
}

// Address returns the address of the device.
func (m *connectionManager) Address() string { return m.address }

// serve accepts calls until the listener is closed.
func (m *connectionManager) serve() {
	for {
		conn, err := m.listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			// Most likely the process is out of descriptors, which may become free.
			m.eventLog.warn("accepting", err)
			m.unproven.MakeRoom()
			time.Sleep(10 * time.Millisecond)
		case m.unproven.Admit(conn):
			m.working.Go(func() { m.receive(conn) })
		case m.leaving.Err() == nil:
			m.eventLog.warn(proof.ErrFull.Error(), fmt.Errorf("peer %v: %w", conn.RemoteAddr(), proof.ErrFull))
		}
	}
}

// receive makes a connection of a call and follows it.
func (m *connectionManager) receive(conn net.Conn) {
	r, err := m.handshake(conn)
	if err != nil {
		_ = conn.Close()
		if m.leaving.Err() == nil {
			m.eventLog.warn(proof.Class(err, ErrProtocol), fmt.Errorf("peer %v: %w", conn.RemoteAddr(), err))
		}
		return
	}
	defer m.connections.remove(r.connection)
	defer r.connection.end()
	if !m.connections.add(r.connection) {
		return
	}
	if r.meant != m.id {
		r.connection.reject("another device is at this address now")
	} else {
		m.device.ask(r)
	}
	for {
		k, _, err := r.connection.receive()
		if err == nil && k != kindReady {
			err = fmt.Errorf("%w: kind %d from the side that called", ErrProtocol, k)
		}
		if err != nil {
			r.lose(m.device.goneError(r.connection.peer, err))
			return
		}
		r.begin()
	}
}

// handshake lets the caller prove the key and reads its hello.
func (m *connectionManager) handshake(conn net.Conn) (*connectionRequest, error) {
	_, err := m.unproven.Accept(conn, func() (io.ReadWriter, error) {
		return conn, conn.SetDeadline(time.Now().Add(m.limit))
	}, m.key, purpose)
	if err != nil {
		return nil, err
	}
	c := newConnection(conn, "peer "+conn.RemoteAddr().String(), m.connections.silence)
	k, payload, err := c.receive()
	if err != nil {
		return nil, err
	}
	r := &connectionRequest{device: m.device, connection: c}
	return r, r.parse(k, payload)
}

// parse parses the first message of the calling side.
func (r *connectionRequest) parse(k kind, payload []byte) error {
	if k == kindHello && len(payload) > 0 && payload[0] != connectionVersion {
		r.connection.reject(fmt.Sprintf("it speaks version %d of the dialogue, this side version %d", payload[0], connectionVersion))
	}
	if k != kindHello || len(payload) < 1+identitySize+endpointSize || payload[0] != connectionVersion {
		return fmt.Errorf("%w: kind %d of %s in place of a hello", ErrProtocol, k, errtext.Count(len(payload), "byte"))
	}
	copy(r.meant[:], payload[1:])
	payload = payload[1+identitySize:]
	if err := r.peer.parse(payload[:endpointSize]); err != nil {
		return err
	}
	if r.hello = payload[endpointSize:]; len(r.hello) > verbs.MaxHello {
		return fmt.Errorf("%w: a hello of %s", ErrProtocol, errtext.Count(len(r.hello), "byte"))
	}
	return nil
}

// call makes a connection to the device at address and sends the hello.
func (m *connectionManager) call(address string, own *endpoint, hello []byte) (*connection, error) {
	hostPort, id, err := parseAddress(address)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(m.leaving, m.limit)
	defer cancel()
	for calls, rest := 1, firstRest; ; calls, rest = calls+1, min(2*rest, longestRest) {
		c, err := m.try(ctx, hostPort)
		if err == nil {
			payload := append([]byte{connectionVersion}, id[:]...)
			c.send(kindHello, append(own.append(payload), hello...))
			return c, nil
		}
		if !proof.Ended(err) && !netcall.MayPass(err) || calls == maxCalls || ctx.Err() != nil {
			return nil, m.uncalled(hostPort, err)
		}
		select {
		case <-ctx.Done():
			return nil, m.uncalled(hostPort, err)
		case <-time.After(rest/2 + mathrand.N(rest)):
		}
	}
}

// try calls once, and has both sides prove the key.
func (m *connectionManager) try(ctx context.Context, hostPort string) (*connection, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", hostPort)
	if err != nil {
		return nil, netcall.WithoutAddress(err)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	err = proof.Dial(conn, m.key, purpose)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return newConnection(conn, "peer "+hostPort, m.connections.silence), nil
}

// uncalled returns the error and its class if there is no connection.
func (m *connectionManager) uncalled(hostPort string, err error) error {
	class := netcall.Class(err)
	switch {
	case errors.Is(err, proof.ErrKey), errors.Is(err, proof.ErrVersion), errors.Is(err, proof.ErrProtocol):
		class = verbs.ErrRejected
	case class == verbs.ErrPeerGone && os.IsTimeout(err):
		err = fmt.Errorf("the peer did not respond within %v: %w", m.limit, err)
	}
	return fmt.Errorf("ibv: %s: connecting to %s: %w: %w", m.device.name, hostPort, class, netcall.Limited(err))
}

// shut ends everything, and waits for it.
func (m *connectionManager) shut() error {
	m.leave()
	err := m.listener.Close()
	m.unproven.Close()
	m.connections.close()
	return err
}
