package tlstest

import (
	"crypto/tls"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// handshake returns the errors of both sides of a handshake. The client expects a certificate for host.
func handshake(t *testing.T, server, client *tls.Config, host string) (atServer, atClient error) {
	t.Helper()
	l, err := tls.Listen("tcp", "127.0.0.1:0", server)
	require.NoError(t, err)
	defer l.Close()
	ended := make(chan error, 1)
	go func() {
		conn, err := l.Accept()
		if err == nil {
			err = conn.(*tls.Conn).Handshake()
			_ = conn.Close()
		}
		ended <- err
	}()
	near, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	defer near.Close()
	client = client.Clone()
	client.ServerName = host
	atClient = tls.Client(near, client).Handshake()
	return <-ended, atClient
}

func TestConfig(t *testing.T) {
	config, other := Config(t, "127.0.0.1", "10.0.0.2"), Config(t, "127.0.0.1")
	for _, host := range []string{"127.0.0.1", "10.0.0.2"} {
		atServer, atClient := handshake(t, config, config, host)
		require.NoError(t, atServer, host)
		require.NoError(t, atClient, host)
	}
	_, atClient := handshake(t, config, config, "127.0.0.2")
	require.ErrorContains(t, atClient, "127.0.0.2")
	_, atClient = handshake(t, config, other, "127.0.0.1")
	require.ErrorContains(t, atClient, "unknown authority")
	atServer, _ := handshake(t, config, &tls.Config{RootCAs: config.RootCAs}, "127.0.0.1")
	require.ErrorContains(t, atServer, "didn't provide a certificate")
}

func TestPEM(t *testing.T) {
	text := PEM(t, "127.0.0.1")
	one, err := FromPEM(text)
	require.NoError(t, err)
	two, err := FromPEM(text)
	require.NoError(t, err)
	atServer, atClient := handshake(t, one, two, "127.0.0.1")
	require.NoError(t, atServer)
	require.NoError(t, atClient)
	_, err = FromPEM("no certificate")
	require.Error(t, err)
}
