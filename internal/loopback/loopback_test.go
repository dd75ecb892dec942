package loopback

import (
	"net"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/nettest"
)

// The loopback address of a host without IPv4 is the one of IPv6.
func TestAddress(t *testing.T) {
	find := func() error {
		address, err := Address()
		require.NoError(t, err)
		require.True(t, address.IsLoopback())
		at, err := HostPort()
		require.NoError(t, err)
		l, err := net.Listen("tcp", at)
		require.NoError(t, err)
		require.Equal(t, address, l.Addr().(*net.TCPAddr).AddrPort().Addr())
		return l.Close()
	}
	require.NoError(t, find())
	network := nettest.New(t, 1)
	network.OnlyIPv6()
	require.NoError(t, network.Do(0, func() error {
		address, err := Address()
		require.NoError(t, err)
		require.Equal(t, netip.IPv6Loopback(), address)
		return find()
	}))
}
