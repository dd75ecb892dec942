package root

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Each side gives up a silent connection after the silence of its own settings.
func TestSilenceOfTheSettings(t *testing.T) {
	for _, c := range []struct {
		silence      time.Duration
		milliseconds int
		idle         int
	}{
		{0, 10_000, 4},
		{4 * time.Second, 4000, 2},
		{2 * time.Second, 3000, 1},
		{time.Minute, 60_000, 20},
		{time.Nanosecond, 3000, 1},
		{1 << 62, 1<<31 - 1, 10923},
	} {
		s := rankOf(vacant(t), 0, 2)
		s.Silence = c.silence
		l, err := listen(t.Context(), s)
		require.NoError(t, err)
		defer l.Close()
		near, err := s.dialer().DialContext(t.Context(), "tcp", s.Root)
		require.NoError(t, err)
		defer near.Close()
		far, err := l.Accept()
		require.NoError(t, err)
		defer far.Close()
		for side, conn := range map[string]net.Conn{"dialed": near, "accepted": far} {
			require.Equal(t, c.milliseconds, option(t, conn, unix.TCP_USER_TIMEOUT), "%s, silence %v", side, c.silence)
			require.Equal(t, c.idle, option(t, conn, unix.TCP_KEEPIDLE), "%s, silence %v", side, c.silence)
		}
	}
}

func option(t *testing.T, conn net.Conn, name int) int {
	t.Helper()
	raw, err := conn.(*net.TCPConn).SyscallConn()
	require.NoError(t, err)
	var value int
	var failed error
	require.NoError(t, raw.Control(func(fd uintptr) { value, failed = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, name) }))
	require.NoError(t, failed)
	return value
}
