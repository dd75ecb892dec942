package job

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

// A list of addresses is as many rails, each of which has to be one of this host's.
func TestListOfAddresses(t *testing.T) {
	loopback := netip.MustParseAddr("127.0.0.1")
	s, err := newSettings([]Option{WithAddress("127.0.0.1,127.0.0.1")})
	require.NoError(t, err)
	require.Equal(t, []netip.Addr{loopback, loopback}, s.listen)
	listen, err := s.listenAt(t.Context(), true)
	require.NoError(t, err)
	require.Equal(t, s.listen, listen)
	device, err := openNetwork(t.Context(), opening{near: true, device: tcpDevice}, s)
	require.NoError(t, err)
	require.Equal(t, "tcp+tcp", device.Attributes().Name)
	require.NoError(t, device.Close())

	for _, list := range []string{"127.0.0.1,", ",127.0.0.1", "127.0.0.1,240.0.0.1"} {
		_, err := newSettings([]Option{WithAddress(list)})
		require.ErrorIs(t, err, ErrEnvironment)
	}
	many, err := newSettings([]Option{WithAddress("127.0.0.1,127.0.0.1,127.0.0.1,127.0.0.1,127.0.0.1,127.0.0.1,127.0.0.1,127.0.0.1,127.0.0.1")})
	require.NoError(t, err)
	_, err = openNetwork(t.Context(), opening{near: true, device: tcpDevice}, many)
	require.ErrorContains(t, err, "New of 9 devices; allowed are 2 to 8")
}
