package tcp

import (
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/onesided/rma/internal/logqueue"
	"github.com/onesided/rma/internal/loopback"
	"github.com/onesided/rma/internal/netcall"
	"github.com/onesided/rma/internal/proof"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/shm"
)

// Options are the options of a device.
type Options struct {
	// Listen is the host and port to which peers connect. The port may be 0. If empty, it is port 0 of the loopback
	// address.
	Listen string
	// Advertise is the host, or host and port, that peers use instead of Listen's. It is required if Listen names no
	// single host.
	Advertise string
	// Port, if it is not nil, is where peers connect instead of Listen. Several devices may share it.
	Port *Port
	// Key is the job's secret, 16 to 512 random bytes. Without a key any process that reaches the port may connect.
	// That is allowed only if Listen is a loopback address.
	Key []byte
	// TLS, if it is not nil, encrypts all connections, with TLS 1.3 or later. It is used in both roles: it needs a
	// certificate, and what is needed to verify the peers' certificates. If ServerName is empty, the peer's certificate
	// must be for the host of the peer's address.
	TLS *tls.Config
	// Silence is after how long without a word a peer is given up, and how long it
	// may leave what was sent unread. Each time between two polls of this side counts for at most a fifth of
	// Silence, because this side may have been stopped. A rank that polls less often than five times in Silence therefore needs up to six polls
	// to give up a dead peer. Zero is 10 seconds.
	Silence time.Duration
	// HandshakeLimit bounds the time to make a connection and prove the key. Zero means 5 seconds, or Silence if that
	// is less, because a peer that cannot be reached is like one that is silent.
	HandshakeLimit time.Duration
	// Logger logs rejected connections: once per minute for each host and kind of failure, with their number. A Logger
	// that blocks delays nothing else. Nil logs nothing.
	Logger *slog.Logger
	// Without is the set of optimizations to switch off.
	Without Optimization
}

const (
	defaultSilence   = 10 * time.Second
	defaultHandshake = 5 * time.Second
	// minLimit is the shortest Silence or HandshakeLimit. A shorter limit would measure how busy the machine is.
	minLimit = 50 * time.Millisecond
)

// Open opens a device.
func Open(options Options) (verbs.Device, error) {
	if options.Listen == "" && options.Port == nil {
		var err error
		if options.Listen, err = loopback.HostPort(); err != nil {
			return nil, refused("Open", err)
		}
	}
	if options.Silence == 0 {
		options.Silence = defaultSilence
	}
	if options.HandshakeLimit == 0 {
		options.HandshakeLimit = max(min(defaultHandshake, options.Silence), minLimit)
	}
	for name, limit := range map[string]time.Duration{"Silence": options.Silence, "HandshakeLimit": options.HandshakeLimit} {
		if limit < minLimit {
			return nil, argumentError("Open: %s is %v, allowed are %v or more, or 0", name, limit, minLimit)
		}
	}
	if options.Without&^allOptimizations != 0 {
		return nil, argumentError("Open: Without is %#x, known are %#x", options.Without, allOptimizations)
	}
	d := &device{opened: time.Now(), silence: options.Silence, pairs: make(map[uint32]*queuePair)}
	d.connectionManager = connectionManager{device: d, options: options, limit: options.HandshakeLimit, rest: firstRest, accepting: make(map[net.Conn]struct{}),
		unproven: proof.NewRoom(maxUnproven)}
	d.overdue = time.AfterFunc(time.Hour, d.flushAcknowledgements)
	d.overdue.Stop()
	d.channel.device = d
	d.regions.byKey = make(map[uint32]*region)
	d.table.Store(new([]*connection))
	if err := d.connectionManager.prepare(); err != nil {
		return nil, err
	}
	if err := d.poller.open(options.has(FewSockets)); err != nil {
		_ = d.connectionManager.shut()
		d.connectionManager.wait()
		return nil, err
	}
	memory, err := shm.NewFabric().Open()
	if err != nil {
		_ = d.connectionManager.shut()
		d.connectionManager.wait()
		d.poller.close()
		return nil, fmt.Errorf("tcp: %w", err)
	}
	d.memory = memory
	d.connectionManager.open()
	return d, nil
}

const identitySize = 8

// identity is part of a device's address, so that a later device at the same port is not mistaken for it.
type identity [identitySize]byte

// parseAddress takes an address of a device apart.
func parseAddress(address string) (hostPort string, id identity, shared bool, err error) {
	address, shared = strings.CutSuffix(address, sharedMark)
	hostPort, text, ok := strings.Cut(address, "/")
	if ok {
		_, _, err = net.SplitHostPort(hostPort)
		ok = err == nil && len(address) <= 256 && hex.DecodedLen(len(text)) == len(id) && len(text)%2 == 0
	}
	if ok {
		_, err = hex.Decode(id[:], []byte(text))
		ok = err == nil
	}
	if !ok {
		return "", id, false, argumentError("Connect: the address %q, an address of a tcp device is host:port/%d hexadecimal digits", printable([]byte(address)), hex.EncodedLen(len(id)))
	}
	return hostPort, id, shared, nil
}

// Through returns the address of a device at a [Port] for a peer that reaches the Port at hostPort, whatever the Port's
// own address is. Other addresses are returned unchanged.
func Through(hostPort, address string) string {
	if _, id, shared, err := parseAddress(address); err == nil && shared {
		return hostPort + "/" + hex.EncodeToString(id[:]) + sharedMark
	}
	return address
}

// prepare listens, and sets the device's address.
func (m *connectionManager) prepare() error {
	options := &m.options
	if options.TLS != nil {
		if err := m.prepareTLS(); err != nil {
			return err
		}
	}
	m.key = options.Key
	if n := len(m.key); n != 0 && (n < proof.MinKey || n > proof.MaxKey) {
		return argumentError("Open: Key has %d bytes, allowed are %d to %d, or none", n, proof.MinKey, proof.MaxKey)
	}
	_, _ = rand.Read(m.id[:]) // it never fails
	var err error
	if options.Port != nil {
		m.listener, err = options.Port.enter(m.id)
	} else {
		m.listener, err = netcall.Listen(options.Listen)
	}
	if err != nil {
		return refused("Open", err)
	}
	if err := m.name(); err != nil {
		_ = m.listener.Close()
		return err
	}
	if err := m.spare.refill(); err != nil && netcall.IsShortage(err) {
		_ = m.listener.Close()
		return refused("Open", err)
	}
	return nil
}

// name sets the address that peers use.
func (m *connectionManager) name() error {
	bound, err := netip.ParseAddrPort(m.listener.Addr().String())
	if err != nil {
		return refused("Open", err)
	}
	if len(m.key) == 0 {
		if !bound.Addr().IsLoopback() {
			return argumentError("Open: Listen is %s, where other machines connect, and Key is empty; set Key, or listen on a loopback address", bound)
		}
		m.key = make([]byte, anonymousKeySize)
	}
	host, port := bound.Addr().String(), fmt.Sprint(bound.Port())
	switch advertised := m.options.Advertise; {
	case advertised == "" && bound.Addr().IsUnspecified() && m.options.Port == nil:
		return argumentError("Open: Listen is %s, which names no host that peers could connect to; set Advertise", bound)
	case advertised != "":
		host = advertised
		if h, p, err := net.SplitHostPort(advertised); err == nil {
			host, port = h, p
		} else if bare, ok := strings.CutPrefix(host, "["); ok {
			host = strings.TrimSuffix(bare, "]")
		}
	}
	m.address = net.JoinHostPort(host, port) + "/" + hex.EncodeToString(m.id[:])
	if m.options.Port != nil {
		m.address += sharedMark
	}
	if _, _, _, err := parseAddress(m.address); err != nil || strings.ContainsFunc(m.address, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return argumentError("Open: Advertise is %q, must be a host, or a host and a port", printable([]byte(m.options.Advertise)))
	}
	m.log = logqueue.NewLimited(m.options.Logger, "tcp: ", m.address)
	return nil
}

// anonymousKeySize is the length of the key that stands for no key.
const anonymousKeySize = 32
