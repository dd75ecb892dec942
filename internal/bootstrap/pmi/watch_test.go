package pmi

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
)

// joined returns a server and the client of its only rank.
func joined(t *testing.T) (*Server, *Client) {
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
	return server, client
}

// watch starts AwaitLoss and returns a channel for its result.
func watch(client *Client) <-chan bool {
	lost := make(chan bool, 1)
	go func() { lost <- client.AwaitLoss() }()
	return lost
}

// watched returns a server, its client, and a channel for the result of AwaitLoss.
func watched(t *testing.T) (*Server, *Client, <-chan bool) {
	t.Helper()
	server, client := joined(t)
	lost := watch(client)
	await.Parked(t, "pmi.(*Client).AwaitLoss", 1)
	return server, client, lost
}

// AwaitLoss returns true if the manager ends, and false if this rank finalizes or closes the connection.
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

// The deadline of a request does not end AwaitLoss.
func TestAwaitLossAfterDeadline(t *testing.T) {
	past := time.Unix(1, 0)
	server, client := joined(t)
	require.NoError(t, client.conn.SetDeadline(past))
	lost := watch(client)
	require.NoError(t, server.Close())
	require.True(t, await.Receive(t, "the loss of the manager", lost))

	server, client, lost = watched(t)
	for range 3 {
		_, err := client.Get("nothing")
		require.ErrorIs(t, err, ErrNotFound)
	}
	await.Parked(t, "pmi.awaitInput", 1)
	require.NoError(t, client.conn.SetDeadline(past))
	require.NoError(t, server.Close())
	require.True(t, await.Receive(t, "the loss of the manager", lost))
}

// If the manager ends during a request, AwaitLoss returns true, even if the request notices the end first.
func TestAwaitLossInBarrier(t *testing.T) {
	server, clients := newJob(t, 2, Events{})
	left := make(chan error, 1)
	go func() { left <- clients[0].Barrier(t.Context()) }()
	await.Parked(t, "pmi.(*Client).Barrier", 1)
	lost := watch(clients[0])
	require.NoError(t, server.Close())
	require.Error(t, await.Receive(t, "the end of the barrier", left))
	require.True(t, await.Receive(t, "the loss of the manager", lost))
}

// AwaitLoss belongs to one job. After that job is finalized it returns false, and the next job needs a call of its own.
func TestAwaitLossOfJob(t *testing.T) {
	_, client := joined(t)
	client.kept = true
	require.NoError(t, client.Finalize())
	require.False(t, await.Receive(t, "a watch that starts after Finalize", watch(client)))

	server, client, lost := watched(t)
	client.kept = true
	require.NoError(t, client.Finalize())
	_, err := client.again()
	require.NoError(t, err)
	require.False(t, await.Receive(t, "the end of the first job's watch", lost))
	lost = watch(client)
	require.NoError(t, server.Close())
	require.True(t, await.Receive(t, "the loss of the manager", lost))
}

// A response without a request ends AwaitLoss, because nothing would read the response.
func TestAwaitLossOfResponseWithoutRequest(t *testing.T) {
	server, _, lost := watched(t)
	server.mu.Lock()
	for c := range server.open {
		require.True(t, c.respond("cmd=barrier_out"))
	}
	server.mu.Unlock()
	require.False(t, await.Receive(t, "the end of the watch", lost))
}
