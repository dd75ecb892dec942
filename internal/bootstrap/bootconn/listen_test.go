package bootconn

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/nettest"
)

// Listen takes an address of the name that this host has.
func TestListen(t *testing.T) {
	var s Settings
	listen := func(address string) (net.IP, error) {
		l, err := s.Listen(t.Context(), address)
		if err != nil {
			return nil, err
		}
		return l.Addr().(*net.TCPAddr).IP, l.Close()
	}
	for _, address := range []string{"localhost:0", "[::1]:0"} {
		at, err := listen(address)
		require.NoError(t, err)
		require.True(t, at.IsLoopback())
	}
	at, err := listen("0.0.0.0:0")
	require.NoError(t, err)
	require.Len(t, at, net.IPv4len, "IPv6 was not asked for: %v", at)
	_, err = listen(":0")
	require.NoError(t, err)
	for _, wrong := range []string{"nonsense", "240.0.0.1:0", "no-such-host.invalid:0"} {
		_, err := listen(wrong)
		require.Error(t, err)
	}
	network := nettest.New(t, 1)
	network.OnlyIPv6()
	require.NoError(t, network.Do(0, func() error {
		at, err := listen("[::1]:0")
		require.Equal(t, net.IPv6loopback, at)
		return err
	}))
}
