package tcp_test

import (
	"io"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/tcp"
	"github.com/onesided/rma/verbs/verbstest"
)

func newPort(t testing.TB) *tcp.Port {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port := tcp.NewPort(listener)
	t.Cleanup(func() { _ = port.Close() })
	return port
}

// All devices are at one Port.
func TestConformanceAtPort(t *testing.T) {
	port := newPort(t)
	verbstest.Run(t, verbstest.Config{Driven: true, Variant: []string{"Connections"}, Open: func(t testing.TB) verbs.Device {
		device, err := tcp.Open(tcp.Options{Port: port, Silence: await.Limit})
		require.NoError(t, err)
		return device
	}})
}

// Accept returns every connection that does not begin like one of a device, with all bytes that it has sent, also while
// another connection is silent. A connection to a device that is not there is declined.
func TestPort(t *testing.T) {
	port := newPort(t)
	device, err := tcp.Open(tcp.Options{Port: port})
	require.NoError(t, err)
	address := device.Address()
	require.True(t, strings.HasPrefix(address, port.Addr().String()+"/"))
	silent, err := net.Dial("tcp", port.Addr().String())
	require.NoError(t, err)
	defer silent.Close()
	for _, said := range []string{"G", "GET / HTTP/1.1\r\n\r\n and more", "RMAproof", "RMA tcp port 2\r\n12345678"} {
		conn, err := net.Dial("tcp", port.Addr().String())
		require.NoError(t, err)
		_, err = conn.Write([]byte(said))
		require.NoError(t, err)
		accepted, err := port.Accept()
		require.NoError(t, err)
		require.NoError(t, conn.(*net.TCPConn).CloseWrite())
		all, err := io.ReadAll(accepted)
		require.NoError(t, err)
		require.Equal(t, said, string(all))
		_, err = accepted.Write([]byte("answer"))
		require.NoError(t, err)
		require.NoError(t, accepted.Close())
		answer, err := io.ReadAll(conn)
		require.NoError(t, err)
		require.Equal(t, "answer", string(answer))
		require.NoError(t, conn.Close())
	}
	isDeclined := func() {
		conn, err := net.Dial("tcp", port.Addr().String())
		require.NoError(t, err)
		defer conn.Close()
		_, err = conn.Write([]byte("RMA tcp port 1\r\n12345678"))
		require.NoError(t, err)
		said, err := io.ReadAll(conn)
		require.NoError(t, err)
		require.Equal(t, "\x00", string(said))
	}
	isDeclined()
	require.NoError(t, device.Close())
	isDeclined()
	require.NoError(t, port.Close())
	require.ErrorIs(t, port.Close(), net.ErrClosed)
	_, err = port.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
	_, err = tcp.Open(tcp.Options{Port: port})
	require.ErrorIs(t, err, net.ErrClosed)
	_, err = io.ReadAll(silent)
	if err != nil {
		require.ErrorContains(t, err, "reset")
	}
}

func TestThrough(t *testing.T) {
	for address, through := range map[string]string{
		"10.0.0.1:7/0123456789abcdef/port": "host:99/0123456789abcdef/port",
		"0.0.0.0:7/0123456789abcdef/port":  "host:99/0123456789abcdef/port",
		"10.0.0.1:7/0123456789abcdef":      "10.0.0.1:7/0123456789abcdef",
		"anything":                         "anything",
		"a/port":                           "a/port",
	} {
		require.Equal(t, through, tcp.Through("host:99", address))
	}
}
