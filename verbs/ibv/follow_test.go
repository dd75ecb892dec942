//go:build ibverbs && cgo && linux

package ibv

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/internal/logqueue"
	"github.com/onesided/rma/verbs"
)

// cardless is a device that has a connection manager, and no card.
func cardless(t *testing.T) *device {
	d := &device{name: "none"}
	d.channel = newArmedChannel(func() {})
	d.connectionManager = connectionManager{device: d, limit: defaultHandshake, eventLog: eventLog{queue: logqueue.New(nil), failures: make(map[string]*failures)}}
	require.NoError(t, d.connectionManager.open(&Options{Listen: "127.0.0.1:0", Silence: defaultSilence}))
	d.connectionManager.working.Go(d.connectionManager.serve)
	t.Cleanup(func() {
		require.NoError(t, d.connectionManager.shut())
		d.connectionManager.working.Wait()
		d.connectionManager.eventLog.close()
	})
	return d
}

// Nothing is left on either side of a queue pair that ended before its connection was made.
func TestConnectionOfEndedPair(t *testing.T) {
	near, far := cardless(t), cardless(t)
	q := &queuePair{device: near, own: someEndpoint(), err: verbs.ErrClosed}
	near.follow(q, far.Address(), []byte("hello"))
	left := func(d *device) int {
		d.connectionManager.connections.mu.Lock()
		defer d.connectionManager.connections.mu.Unlock()
		return len(d.connectionManager.connections.all)
	}
	require.Zero(t, left(near))
	await.True(t, "the far side to have a request, and no connection", func() bool { return left(far) == 0 && far.waiting.Load() == 1 })
	var into [1]verbs.ConnectionRequest
	require.Equal(t, 1, far.PollConnections(into[:]))
	require.Equal(t, "hello", string(into[0].Hello()))
	_, err := into[0].Accept(verbs.QueuePairConfig{})
	require.ErrorIs(t, err, verbs.ErrPeerGone)
}
