package bootconn

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"
)

// ErrSettings: the settings make no sense.
var ErrSettings = errors.New("line: invalid settings")

// Settings are those of either side.
type Settings struct {
	// TLS encrypts, if it is not nil, with at least version 1.3. Who accepts must have a
	// certificate, which who calls checks for the host that it has called, unless the
	// configuration says otherwise.
	TLS *tls.Config
	// Silence is after how long without an answer the other host is given up, three
	// seconds at the least. It is DefaultSilence if it is 0.
	Silence time.Duration
}

// Dialer is for calls that take no longer than a limit.
func (s *Settings) Dialer(limit time.Duration) *net.Dialer {
	return &net.Dialer{Timeout: limit, KeepAliveConfig: s.keepAlive(), Control: s.limitSilence}
}

// ListenConfig is for who accepts.
func (s *Settings) ListenConfig() *net.ListenConfig {
	return &net.ListenConfig{KeepAliveConfig: s.keepAlive(), Control: s.limitSilence}
}

// Listen listens at a host:port. Of a host with several addresses it takes the first that this one has, those of IPv4
// before others, such as of localhost.
func (s *Settings) Listen(ctx context.Context, address string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil || host == "" {
		return s.ListenConfig().Listen(ctx, "tcp", address)
	}
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(found, func(a, b netip.Addr) int { return cmp.Compare(a.Unmap().BitLen(), b.Unmap().BitLen()) })
	return s.ListenFirst(ctx, found, port)
}

// ListenFirst listens at a port of the first of a host's addresses that this one has.
func (s *Settings) ListenFirst(ctx context.Context, addresses []netip.Addr, port string) (net.Listener, error) {
	var errs []error
	for _, a := range addresses {
		// With "tcp" 0.0.0.0 would be all addresses of IPv6, too.
		network := "tcp"
		if a.Unmap().Is4() {
			network = "tcp4"
		}
		l, err := s.ListenConfig().Listen(ctx, network, net.JoinHostPort(a.Unmap().String(), port))
		if err == nil {
			return l, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// Accept is a connection that was accepted, as what goes over it is written to and read from.
func (s *Settings) Accept(conn net.Conn) net.Conn {
	if s.TLS == nil {
		return conn
	}
	return tls.Server(conn, s.atLeast13())
}

// Call is Accept for a connection to a host.
func (s *Settings) Call(conn net.Conn, host string) net.Conn {
	if s.TLS == nil {
		return conn
	}
	config := s.atLeast13()
	if config.ServerName == "" {
		config.ServerName = host
	}
	return tls.Client(conn, config)
}

func (s *Settings) atLeast13() *tls.Config {
	config := s.TLS.Clone()
	config.MinVersion = max(config.MinVersion, tls.VersionTLS13)
	return config
}

// Handshake makes TLS ready, if the connection has it. The version is looked at once
// more, because a configuration of the user's can put another, which allows an older
// one, in its own place for each connection.
func Handshake(conn net.Conn) error {
	secure, ok := conn.(*tls.Conn)
	if !ok {
		return nil
	}
	if err := secure.Handshake(); err != nil {
		return fmt.Errorf("line: TLS: %w", err)
	}
	if version := secure.ConnectionState().Version; version < tls.VersionTLS13 {
		return fmt.Errorf("line: TLS: the peer speaks %s, the least allowed is %s", tls.VersionName(version), tls.VersionName(tls.VersionTLS13))
	}
	return nil
}

// Check says what is wrong with the settings of one who calls, or accepts.
func (s *Settings) Check(accepts bool) error {
	switch c := s.TLS; {
	case s.Silence < 0:
		return fmt.Errorf("%w: silence %v, must be more than 0, or 0 for %v", ErrSettings, s.Silence, DefaultSilence)
	case c == nil:
	case c.MaxVersion != 0 && c.MaxVersion < tls.VersionTLS13:
		return fmt.Errorf("%w: TLS of at most %s, must allow %s", ErrSettings, tls.VersionName(c.MaxVersion), tls.VersionName(tls.VersionTLS13))
	case accepts && len(c.Certificates) == 0 && c.GetCertificate == nil && c.GetConfigForClient == nil:
		return fmt.Errorf("%w: TLS without a certificate, which who accepts needs", ErrSettings)
	}
	return nil
}
