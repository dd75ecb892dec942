package tcp

import (
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/proof"
	"github.com/onesided/rma/verbs"
)

// listening is the address, of a device with this identity, at which each connection is
// served by serve, which gets its number and does not close it.
func listening(t *testing.T, identity string, serve func(conn *net.TCPConn, call int)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var all sync.WaitGroup
	all.Go(func() {
		for call := 1; ; call++ {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			all.Go(func() { defer conn.Close(); serve(conn.(*net.TCPConn), call) })
		}
	})
	t.Cleanup(func() { _ = listener.Close(); all.Wait() })
	return listener.Addr().String() + "/" + identity
}

// between carries bytes between two connections until either ends.
func between(conn *net.TCPConn, to string) {
	far, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer far.Close()
	go func() { _, _ = io.Copy(far, conn); _ = far.Close() }()
	_, _ = io.Copy(conn, far)
}

// A peer that has to end connections before the proof is over, for many come at once, is called again and loses none of
// them.
func TestCalledAgain(t *testing.T) {
	for name, end := range map[string]func(conn *net.TCPConn){
		"at once":             func(*net.TCPConn) {},
		"by a reset":          func(conn *net.TCPConn) { _ = conn.SetLinger(0) },
		"in the midst":        func(conn *net.TCPConn) { _, _ = io.ReadFull(conn, make([]byte, 20)) },
		"after the challenge": func(conn *net.TCPConn) { _ = proof.Accept(hasty{conn}, make([]byte, anonymousKeySize), purpose) },
	} {
		t.Run(name, func(t *testing.T) {
			near, far := openWith(t, Options{}), openWith(t, Options{})
			CallsAgainSoon(near)
			hostPort, id, _ := strings.Cut(far.Address(), "/")
			var calls atomic.Int32
			address := listening(t, id, func(conn *net.TCPConn, call int) {
				if calls.Store(int32(call)); call < 9 {
					end(conn)
				} else {
					between(conn, hostPort)
				}
			})
			p := connect(t, near, address)
			accept(t, p, far)
			require.EqualValues(t, 9, calls.Load())
			require.NoError(t, near.Close())
		})
	}
}

// hasty is a connection that ends before the answer is read.
type hasty struct{ net.Conn }

func (h hasty) Read(b []byte) (int, error) {
	const answer = 32
	if len(b) == answer {
		if _, err := io.ReadFull(h.Conn, b); err != nil {
			return 0, err
		}
		return 0, io.EOF
	}
	return h.Conn.Read(b)
}

// One that never lets anybody through is called so often and no more.
func TestCalledNoMore(t *testing.T) {
	for _, c := range []struct {
		name  string
		serve func(conn *net.TCPConn)
		calls int32
		is    error
		mark  string
	}{
		{"ends all", func(*net.TCPConn) {}, maxCalls, verbs.ErrPeerGone, ""},
		{"speaks another protocol", func(conn *net.TCPConn) { _, _ = io.WriteString(conn, "220 mail.example ESMTP\r\n") }, 1, proof.ErrProtocol, ""},
		{"holds another key", func(conn *net.TCPConn) { _ = proof.Accept(conn, proof.NewKey(), purpose) }, 1, proof.ErrKey, ""},
		{"ends when it has heard the proof", func(conn *net.TCPConn) { _ = proof.Accept(conn, make([]byte, anonymousKeySize), purpose) }, 1, verbs.ErrPeerGone, ""},
		{"is a port without the device", func(conn *net.TCPConn) { _, _ = conn.Write([]byte{absent}) }, 1, errAbsent, sharedMark},
	} {
		t.Run(c.name, func(t *testing.T) {
			var calls atomic.Int32
			address := listening(t, "0123456789abcdef", func(conn *net.TCPConn, call int) {
				calls.Store(int32(call))
				c.serve(conn)
				_ = conn.CloseWrite()
				_, _ = io.Copy(io.Discard, conn)
			})
			near := openWith(t, Options{})
			CallsAgainSoon(near)
			require.ErrorIs(t, failure(t, connect(t, near, address+c.mark)), c.is)
			require.Equal(t, c.calls, calls.Load())
		})
	}
}

// One whose time runs out in a later call says also how the peer ended the one before.
func TestTimeRunsOutInALaterCall(t *testing.T) {
	t.Parallel()
	const limit = 40 * minLimit
	address := listening(t, "0123456789abcdef", func(conn *net.TCPConn, call int) {
		if call > 1 {
			_, _ = io.Copy(io.Discard, conn)
		}
	})
	near := openWith(t, Options{HandshakeLimit: limit})
	CallsAgainSoon(near)
	err := failure(t, connect(t, near, address))
	require.ErrorIs(t, err, verbs.ErrPeerGone)
	require.ErrorContains(t, err, "the peer did not respond within "+limit.String())
	require.ErrorContains(t, err, "it may demand TLS")
}

// The error of a call that the network ends has the address of the peer once, and says that the peer is gone only where that may be.
func TestWhyADialFails(t *testing.T) {
	t.Parallel()
	// A route may come back within the limit.
	device := openWith(t, Options{HandshakeLimit: 40 * minLimit})
	for address, c := range map[string]struct {
		class error
		says  string
	}{
		// Nobody connects to a group of hosts.
		"224.0.0.1:7": {syscall.ENETUNREACH, "tcp: connecting to 224.0.0.1:7: this host has no route to it: connect: network is unreachable"},
		"127.0.0.1:0": {verbs.ErrPeerGone, "tcp: connecting to 127.0.0.1:0: verbs: peer is gone: connect: connection refused"},
	} {
		err := failure(t, connect(t, device, address+"/0123456789abcdef"))
		require.ErrorIs(t, err, c.class)
		require.EqualError(t, err, c.says)
		require.NotErrorIs(t, err, verbs.ErrShortage)
	}
}

// The error of a call that lacks descriptors names their limit.
func TestShortDialNamesTheLimit(t *testing.T) {
	err := new(connectionManager).unconnected(t.Context(), "10.0.0.1:7", os.NewSyscallError("socket", syscall.EMFILE))
	require.ErrorIs(t, err, verbs.ErrShortage)
	require.ErrorContains(t, err, "RLIMIT_NOFILE (ulimit -n) is ")
}
