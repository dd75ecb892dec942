package job

import (
	"errors"
	"fmt"
	"net"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// A rank leaves although it is about to tell another of its host of a failure, and that one
// does not answer: it is stopped, say.
func TestLeavesWhileTelling(t *testing.T) {
	worlds := meetApart(t, "one", "one", "two")
	w := worlds[0]
	name := fmt.Sprintf("%032x", os.Getpid())
	silent, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: "@rma-" + name, Net: "unixpacket"})
	require.NoError(t, err)
	defer func() { require.NoError(t, silent.Close()) }()
	w.job.contacts[1].addresses[sharedCard] = "shm:" + name
	w.neighbors[1].Store(nil)

	w.roster.fail(2, errors.New("killed"))
	stands, err := silent.AcceptUnix()
	require.NoError(t, err)
	defer func() { _ = stands.Close() }()
	asks, err := silent.AcceptUnix()
	require.NoError(t, err)
	defer func() { _ = asks.Close() }()
	question := make([]byte, 1)
	// Its proof, and its request for the segment.
	for range 2 {
		n, err := asks.Read(question)
		require.NoError(t, err)
		require.Equal(t, 1, n)
	}

	raw, err := asks.SyscallConn()
	require.NoError(t, err)
	// The device is closed behind this, which ends the question.
	w.OnClose(func() error {
		require.NoError(t, raw.Control(func(fd uintptr) {
			_, _, err = unix.Recvfrom(int(fd), question, unix.MSG_PEEK|unix.MSG_DONTWAIT)
		}))
		require.ErrorIs(t, err, unix.EAGAIN, "who leaves has waited for the answer")
		return nil
	})
	require.NoError(t, w.depart())
	for _, w := range worlds[1:] {
		require.NoError(t, w.depart())
	}
}
