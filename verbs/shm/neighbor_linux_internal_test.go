package shm

import (
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/verbs"
)

// descriptors counts what files this process has open.
func descriptors(t *testing.T) int {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(files)
}

// settled waits until what is counted has come down to limit, as it does when the
// goroutines of the other ends of sockets have seen their ends.
func settled(t *testing.T, count func(*testing.T) int, limit int) {
	t.Helper()
	for end := time.Now().Add(time.Minute); count(t) > limit; time.Sleep(time.Millisecond) {
		require.True(t, time.Now().Before(end), "%d are left, at most %d are allowed", count(t), limit)
	}
}

// TestCloseWhileConnecting closes devices that have just begun to connect.
func TestCloseWhileConnecting(t *testing.T) {
	target := newSide(t, openProcesses(t)())
	once := func() {
		device, err := Open(Options{})
		require.NoError(t, err)
		queue, err := device.CreateCompletionQueue(4)
		require.NoError(t, err)
		_, err = device.Connect(target.device.Address(), nil, verbs.QueuePairConfig{SendQueue: queue, ReceiveQueue: queue})
		require.NoError(t, err)
		require.NoError(t, device.Close())
		require.Empty(t, device.form.(*process).peers)
	}
	once()
	before := descriptors(t)
	for range 200 {
		once()
	}
	settled(t, descriptors, before)
}

// TestLinkAfterClose looks that a closed device opens no connection.
func TestLinkAfterClose(t *testing.T) {
	target := newSide(t, openProcesses(t)())
	device, err := Open(Options{})
	require.NoError(t, err)
	require.NoError(t, device.Close())
	before := descriptors(t)
	_, err = device.form.(*process).neighbor(target.device.Address())
	require.ErrorIs(t, err, verbs.ErrClosed)
	settled(t, descriptors, before)
}

// TestCloseOpensNothing closes a device with the request of a peer that it never opened,
// and looks that it does not go there to refuse.
func TestCloseOpensNothing(t *testing.T) {
	peer, address := pretend(t)
	device, err := Open(Options{})
	require.NoError(t, err)
	p := device.form.(*process)
	require.NoError(t, device.ask(&processRequest{to: p, sender: address, locator: segmentStart}))
	require.NoError(t, device.Close())
	require.NoError(t, peer.SetDeadline(time.Now()))
	_, err = peer.AcceptUnix()
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
}

// pretend listens as a device does, for what a peer may do wrong.
func pretend(t *testing.T) (*net.UnixListener, string) {
	t.Helper()
	address := addressPrefix + "0123456789abcdef0123456789" + fmt.Sprintf("%06d", os.Getpid()%1000000)
	name, ok := socketOf(address)
	require.True(t, ok)
	listener, err := net.ListenUnix("unixpacket", name)
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	return listener, address
}
