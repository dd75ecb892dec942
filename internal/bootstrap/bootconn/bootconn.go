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

// ErrSettings reports invalid settings.
var ErrSettings = errors.New("bootconn: invalid settings")

// Settings are the settings of either side.
type Settings struct {
	// TLS, if not nil, encrypts with at least version 1.3. The accepting side must have a certificate. The calling
	// side checks it for the host that it has called, unless the configuration says otherwise.
	TLS *tls.Config
	// Silence is the time without an answer after which the other host is given up, at least three seconds. 0 means
	// DefaultSilence.
	Silence time.Duration
}

// Dialer returns a dialer whose calls take no longer than limit.
func (s *Settings) Dialer(limit time.Duration) *net.Dialer {
	return &net.Dialer{Timeout: limit, KeepAliveConfig: s.keepAlive(), Control: s.limitSilence}
}

// ListenConfig returns the configuration of a listener.
func (s *Settings) ListenConfig() *net.ListenConfig {
	return &net.ListenConfig{KeepAliveConfig: s.keepAlive(), Control: s.limitSilence}
}

// Listen listens at a host:port. If the host has several addresses, it takes the first that this host has, IPv4
// before others.
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

// ListenFirst listens on a port at the first of a host's addresses that this host has.
func (s *Settings) ListenFirst(ctx context.Context, addresses []netip.Addr, port string) (net.Listener, error) {
	var errs []error
	for _, a := range addresses {
		// With "tcp", 0.0.0.0 would include all IPv6 addresses.
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

// Accept returns the connection to use on a connection that was accepted: conn, or TLS over it.
func (s *Settings) Accept(conn net.Conn) net.Conn {
	if s.TLS == nil {
		return conn
	}
	return tls.Server(conn, s.atLeast13())
}

// Call is like Accept, for a connection to a host.
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

// Handshake completes the TLS handshake, if the connection has TLS. It checks the version again, because a
// configuration may substitute another one for each connection, which allows an older version.
func Handshake(conn net.Conn) error {
	secure, ok := conn.(*tls.Conn)
	if !ok {
		return nil
	}
	if err := secure.Handshake(); err != nil {
		return fmt.Errorf("bootconn: TLS: %w", err)
	}
	if version := secure.ConnectionState().Version; version < tls.VersionTLS13 {
		return fmt.Errorf("bootconn: TLS: the peer speaks %s, the least allowed is %s", tls.VersionName(version), tls.VersionName(tls.VersionTLS13))
	}
	return nil
}

// Check returns an error if the settings are invalid for a caller, or for a listener if accepts is set.
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
