//go:build linux

package shm

import (
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/internal/shortage"
	"github.com/onesided/rma/verbs"
)

// A process that has no descriptor to reach a peer with does not take it for gone, at
// whatever step it lacks one, and reaches it when it has.
func TestShortOfDescriptors(t *testing.T) {
	for _, test := range []struct {
		name string
		met  bool
		left int
	}{
		{"to connect to the peer", false, 0},
		{"to ask for the segment", true, 0},
		// The request takes one here, and its other end, in this process too, another.
		{"for the segment", true, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			open := openProcesses(t)
			near, far := open(), open()
			if test.met {
				_, err := near.Watch(far.Address(), func(error) {})
				require.NoError(t, err)
				// The other end takes a descriptor here, too.
				l := far.form.(*process).listener
				settled(t, func(*testing.T) int {
					l.mu.Lock()
					defer l.mu.Unlock()
					return 1 - len(l.open)
				}, 0)
			}
			end := shortage.Begin(t, test.left)
			_, err := near.Neighbor(far.Address())
			end()
			require.ErrorIs(t, err, verbs.ErrShortage)
			require.ErrorIs(t, err, unix.EMFILE)
			require.NotErrorIs(t, err, verbs.ErrPeerGone)
			_, err = near.Neighbor(far.Address())
			require.NoError(t, err)
		})
	}
}

// A process that may send no more descriptors is short of them. One whose neighbor may not, and so does not respond,
// says that too.
func TestTooManyDescriptorsOnTheirWay(t *testing.T) {
	p := &process{handshakeLimit: time.Second}
	err := p.unreached("shm:x", &net.OpError{Op: "write", Err: os.NewSyscallError("sendmsg", unix.ETOOMANYREFS)})
	require.ErrorIs(t, err, verbs.ErrShortage)
	require.ErrorIs(t, err, unix.ETOOMANYREFS)
	require.ErrorContains(t, err, "RLIMIT_NOFILE (ulimit -n)")

	n := &neighbor{process: p, pid: 7, address: "shm:x"}
	err = n.noResponse(nil, &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded})
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.ErrorContains(t, err, "shm: process 7 has not passed on its memory within 1s, as when it is stopped, or")
	require.ErrorContains(t, err, "RLIMIT_NOFILE (ulimit -n)")
}

// A connection waits for descriptors, but not for ever.
func TestConnectShortOfDescriptors(t *testing.T) {
	open := openProcesses(t)
	near, far := newSide(t, open()), newSide(t, open())
	end := shortage.Begin(t, 0)
	near.device.form.(*process).shortPatience = time.Millisecond
	near.connect(far.device.Address(), verbs.QueuePairConfig{})
	near.await(func() bool { return near.pair.State() == verbs.StateError }, "end of patience")
	require.ErrorIs(t, near.pair.Err(), verbs.ErrShortage)
	near.device.form.(*process).shortPatience = await.Limit
	near.connect(far.device.Address(), verbs.QueuePairConfig{})
	end()
	_, err := far.request().Accept(verbs.QueuePairConfig{SendQueue: far.queue, ReceiveQueue: far.queue})
	require.NoError(t, err)
	near.await(func() bool { return near.pair.State() == verbs.StateReady }, "connection")
}

// A peer whose socket ends when it is asked for its segment is gone, however that end shows.
func TestSocketEnds(t *testing.T) {
	for _, test := range []struct {
		name string
		take func(*net.UnixConn) error
	}{
		{"when it has read", func(conn *net.UnixConn) error { _, err := conn.Read(make([]byte, 1)); return err }},
		{"with what it has not read", func(conn *net.UnixConn) error {
			raw, err := conn.SyscallConn()
			if err != nil {
				return err
			}
			return raw.Read(func(fd uintptr) bool {
				_, _, err := unix.Recvfrom(int(fd), make([]byte, 1), unix.MSG_PEEK)
				return err != unix.EAGAIN
			})
		}},
		{"at once", func(*net.UnixConn) error { return nil }},
	} {
		t.Run(test.name, func(t *testing.T) {
			peer, address := pretend(t)
			device, err := Open(Options{})
			require.NoError(t, err)
			defer func() { require.NoError(t, device.Close()) }()
			n, err := device.form.(*process).link(address)
			require.NoError(t, err)
			stands, err := peer.AcceptUnix()
			require.NoError(t, err)
			defer func() { require.NoError(t, stands.Close()) }()
			served := make(chan error, 1)
			go func() {
				conn, err := peer.AcceptUnix()
				if err == nil {
					err = test.take(conn)
				}
				_ = conn.Close()
				served <- err
			}()
			err = n.open()
			require.ErrorIs(t, err, verbs.ErrPeerGone)
			require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
			require.NoError(t, <-served)
		})
	}
}
