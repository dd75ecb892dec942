package pmi

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
)

// watched is a client of a server, and whether it loses that.
func watched(t *testing.T) (*Server, *Client, <-chan bool) {
	t.Helper()
	server := NewServer(1, Events{})
	t.Cleanup(func() { _ = server.Close() })
	file, _, err := server.Child(0, 0)
	require.NoError(t, err)
	conn, err := net.FileConn(file)
	require.NoError(t, err)
	require.NoError(t, file.Close())
	client, err := New(conn, 0, 1)
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	lost := make(chan bool, 1)
	go func() { lost <- client.AwaitLoss() }()
	await.Parked(t, "pmi.(*Client).AwaitLoss", 1)
	return server, client, lost
}

// A manager that is gone is noticed, one that this rank leaves is not missed.
func TestAwaitLoss(t *testing.T) {
	server, _, lost := watched(t)
	require.NoError(t, server.Close())
	require.True(t, await.Receive(t, "the loss of the manager", lost))

	_, client, lost := watched(t)
	require.NoError(t, client.Finalize())
	require.False(t, await.Receive(t, "the end of the watch", lost))

	_, client, lost = watched(t)
	require.NoError(t, client.Close())
	require.False(t, await.Receive(t, "the end of the watch", lost))
}
