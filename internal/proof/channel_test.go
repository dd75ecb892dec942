package proof_test

import (
	"crypto/tls"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/proof"
	"github.com/onesided/rma/internal/tlstest"
)

// over makes a peer act over the TLS connection that wrap makes of its connection.
func over(wrap func(net.Conn) *tls.Conn, do peer) peer {
	return func(conn io.ReadWriter) error { return do(wrap(conn.(net.Conn))) }
}

func server(config *tls.Config) func(net.Conn) *tls.Conn {
	return func(conn net.Conn) *tls.Conn { return tls.Server(conn, config) }
}

func client(config *tls.Config) func(net.Conn) *tls.Conn {
	config = config.Clone()
	config.ServerName = "127.0.0.1"
	return func(conn net.Conn) *tls.Conn { return tls.Client(conn, config) }
}

func TestProofOverTLS(t *testing.T) {
	config := tlstest.Config(t, "127.0.0.1")
	for _, handshake := range []bool{false, true} {
		near, far := client(config), server(config)
		if handshake {
			near, far = first(near), first(far)
		}
		nearErr, farErr := meet(t, over(near, dial(ours, "p")), over(far, accept(ours, "p")))
		require.NoError(t, nearErr)
		require.NoError(t, farErr)
	}
}

// first makes the handshake precede the proof.
func first(wrap func(net.Conn) *tls.Conn) func(net.Conn) *tls.Conn {
	return func(conn net.Conn) *tls.Conn {
		secure := wrap(conn)
		// If the handshake fails, the proof fails with the same error.
		_ = secure.Handshake()
		return secure
	}
}

// A third party whose certificate both ends accept terminates TLS on both sides and relays the proof. Both ends reject
// it.
func TestProofRelayedBetweenTLSConnections(t *testing.T) {
	config := tlstest.Config(t, "127.0.0.1")
	nearErr, farErr := relayed(t, client(config), server(config), func(a, b net.Conn) (io.ReadWriteCloser, io.ReadWriteCloser) {
		return server(config)(a), client(config)(b)
	})
	require.ErrorIs(t, nearErr, proof.ErrKey)
	require.ErrorIs(t, farErr, proof.ErrKey)
}

// A third party that speaks TLS with one end and plain TCP with the other is rejected as well.
func TestProofRelayedFromTLS(t *testing.T) {
	config := tlstest.Config(t, "127.0.0.1")
	plain := func(conn net.Conn) *tls.Conn { return nil }
	nearErr, farErr := relayed(t, client(config), plain, func(a, b net.Conn) (io.ReadWriteCloser, io.ReadWriteCloser) {
		return server(config)(a), b
	})
	require.ErrorIs(t, nearErr, proof.ErrKey)
	require.ErrorIs(t, farErr, proof.ErrKey)
}

// relayed runs the proof between two ends. A third party relays between their connections, each wrapped as between
// returns it.
func relayed(t *testing.T, near, far func(net.Conn) *tls.Conn, between func(a, b net.Conn) (io.ReadWriteCloser, io.ReadWriteCloser)) (nearErr, farErr error) {
	t.Helper()
	a, toNear := net.Pipe()
	b, toFar := net.Pipe()
	one, other := between(toNear, toFar)
	var relays sync.WaitGroup
	relay := func(to, from io.ReadWriteCloser) {
		relays.Go(func() {
			_, _ = io.Copy(to, from)
			_ = to.Close()
		})
	}
	relay(one, other)
	relay(other, one)
	var ends sync.WaitGroup
	end := func(conn net.Conn, wrap func(net.Conn) *tls.Conn, do peer, err *error) {
		ends.Go(func() {
			defer conn.Close()
			if secure := wrap(conn); secure != nil {
				*err = do(secure)
				return
			}
			*err = do(conn)
		})
	}
	end(a, near, dial(ours, "p"), &nearErr)
	end(b, far, accept(ours, "p"), &farErr)
	ends.Wait()
	relays.Wait()
	return nearErr, farErr
}
