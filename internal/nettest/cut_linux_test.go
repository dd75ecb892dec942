package nettest_test

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/onesided/rma/internal/nettest"
)

// dial connects from a host to an address.
func dial(t *testing.T, n *nettest.Network, from int, address string) *net.TCPConn {
	t.Helper()
	var connection net.Conn
	require.NoError(t, n.Do(from, func() (err error) {
		connection, err = net.Dial("tcp4", address)
		return err
	}))
	t.Cleanup(func() { _ = connection.Close() })
	return connection.(*net.TCPConn)
}

// giveUp makes a connection end when the other side has acknowledged nothing for a time.
func giveUp(t *testing.T, c *net.TCPConn, after time.Duration) {
	t.Helper()
	raw, err := c.SyscallConn()
	require.NoError(t, err)
	var failed error
	require.NoError(t, raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(after.Milliseconds()))
	}))
	require.NoError(t, failed)
}

// say sends words to an echo, and hear reads them back.
func say(t *testing.T, c net.Conn, words string) {
	t.Helper()
	_, err := io.WriteString(c, words)
	require.NoError(t, err)
}

func hear(t *testing.T, c net.Conn, words string) {
	t.Helper()
	heard := make([]byte, len(words))
	_, err := io.ReadFull(c, heard)
	require.NoError(t, err)
	require.Equal(t, words, string(heard))
}

// A cut link delays its traffic until a connection gives up. A connection that does not give up continues when the link
// is joined again. Other links are not affected.
func TestCut(t *testing.T) {
	t.Parallel()
	for _, end := range []struct {
		name string
		cut  int
	}{{"theirs", 0}, {"ours", 2}} {
		t.Run(end.name, func(t *testing.T) {
			t.Parallel()
			n := nettest.New(t, 3)
			start(t, n, 0, "echo", at(n, 0))
			start(t, n, 1, "echo", at(n, 1))
			impatient, patient := dial(t, n, 2, at(n, 0)), dial(t, n, 2, at(n, 0))
			other := dial(t, n, 1, at(n, 1))
			giveUp(t, impatient, 50*time.Millisecond)
			for _, c := range []net.Conn{impatient, patient, other} {
				say(t, c, "before")
				hear(t, c, "before")
			}
			n.Cut(end.cut)
			for _, c := range []net.Conn{impatient, patient, other} {
				say(t, c, "during")
			}
			hear(t, other, "during")
			_, err := impatient.Read(make([]byte, 1))
			require.ErrorIs(t, err, unix.ETIMEDOUT)
			n.Join(end.cut)
			hear(t, patient, "during")
			again := dial(t, n, 2, at(n, 0))
			say(t, again, "after")
			hear(t, again, "after")
		})
	}
}

// Cutting a link that is cut, and joining one that is joined, changes nothing.
func TestCutTwice(t *testing.T) {
	t.Parallel()
	n := nettest.New(t, 1)
	n.Cut(0)
	n.Cut(0)
	n.Join(0)
	n.Join(0)
	n.Cut(0)
	start(t, n, 0, "echo", at(n, 0))
	c := dial(t, n, 0, at(n, 0))
	say(t, c, "to myself")
	hear(t, c, "to myself")
}
