package tcp

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// A connection from an address to itself is within the machine, and uses reno if that is
// wanted; one between addresses that may be of two machines stays as it is.
func TestReno(t *testing.T) {
	for _, c := range []struct {
		name     string
		from, to net.IP
		wanted   bool
		reno     bool
	}{
		{"one address", net.IPv4(127, 0, 0, 1), net.IPv4(127, 0, 0, 1), true, true},
		{"one address, not wanted", net.IPv4(127, 0, 0, 1), net.IPv4(127, 0, 0, 1), false, false},
		{"one address of version 6", net.IPv6loopback, net.IPv6loopback, true, true},
		{"two addresses", net.IPv4(127, 0, 0, 1), net.IPv4(127, 0, 0, 2), true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			door, err := net.ListenTCP("tcp", &net.TCPAddr{IP: c.to})
			if err != nil && c.to.To4() == nil {
				t.Skip("skipped: no loopback address of IP version 6:", err)
			}
			require.NoError(t, err)
			defer door.Close()
			conn, err := net.DialTCP("tcp", &net.TCPAddr{IP: c.from}, door.Addr().(*net.TCPAddr))
			require.NoError(t, err)
			defer conn.Close()
			raw, err := conn.SyscallConn()
			require.NoError(t, err)
			require.NoError(t, raw.Control(func(fd uintptr) {
				// A system's own choice may be reno: another tells them apart.
				const other = "cubic"
				if err := unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, other); err != nil {
					t.Skip("skipped: no congestion control but reno:", err)
				}
				tune(int(fd), time.Second, c.wanted)
				used, err := unix.GetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION)
				require.NoError(t, err)
				want := other
				if c.reno {
					want = "reno"
				}
				require.Equal(t, want, used)
			}))
		})
	}
}
