package tcp

import (
	"crypto/tls"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/proof"
	"github.com/onesided/rma/internal/tlstest"
	"github.com/onesided/rma/verbs"
)

// A configuration that the user's puts in its own place cannot allow an older version.
func TestNoOlderTLS(t *testing.T) {
	config := tlstest.Config(t, "127.0.0.1")
	older := config.Clone()
	older.MaxVersion = tls.VersionTLS12
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return older, nil }
	var said logs
	far := openWith(t, Options{TLS: config, Logger: said.logger()})
	conn, err := tls.Dial("tcp", far.listener.Addr().String(), older)
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	require.Error(t, proof.Dial(conn, make([]byte, anonymousKeySize), purpose), "the device has answered over %s", tls.VersionName(conn.ConnectionState().Version))
	pollUntil(t, "the log", func() bool { return said.has("the peer speaks TLS 1.2, the least allowed is TLS 1.3") }, far)
}

// A third party whose certificate both devices accept ends TLS on both sides and relays the proof. Both reject it.
func TestProofRelayedBetweenDevices(t *testing.T) {
	config, key := tlstest.Config(t, "127.0.0.1"), proof.NewKey()
	// It relays until the devices are closed.
	var relaying sync.WaitGroup
	t.Cleanup(relaying.Wait)
	var said logs
	near, far := openWith(t, Options{TLS: config, Key: key}), openWith(t, Options{TLS: config, Key: key, Logger: said.logger()})
	hostPort, id, _ := strings.Cut(far.Address(), "/")
	relay, err := tls.Listen("tcp", "127.0.0.1:0", config)
	require.NoError(t, err)
	t.Cleanup(func() { _ = relay.Close() })
	relaying.Go(func() {
		called, err := relay.Accept()
		if err != nil {
			return
		}
		defer called.Close()
		calls, err := tls.Dial("tcp", hostPort, config)
		if err != nil {
			t.Error(err)
			return
		}
		defer calls.Close()
		relaying.Go(func() {
			_, _ = io.Copy(called, calls)
			_ = called.Close()
		})
		_, _ = io.Copy(calls, called)
	})
	q := connect(t, near, relay.Addr().String()+"/"+id)
	var requests [1]verbs.ConnectionRequest
	pollUntil(t, "an answer to the proof", func() bool {
		return q.State() != verbs.StateConnecting || far.PollConnections(requests[:]) > 0
	}, near, far)
	require.ErrorIs(t, q.Err(), verbs.ErrRejected)
	require.ErrorIs(t, q.Err(), proof.ErrKey)
	pollUntil(t, "the log", func() bool { return said.has("relays TLS") }, far)
	require.Zero(t, far.PollConnections(requests[:]))
}
