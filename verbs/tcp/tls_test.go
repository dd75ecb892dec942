package tcp_test

import (
	"crypto/tls"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/internal/proof"
	"github.com/onesided/rma/internal/tlstest"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/tcp"
	"github.com/onesided/rma/verbs/verbstest"
)

// All of the contract holds with TLS.
func TestTLSConformance(t *testing.T) {
	config := tlstest.Config(t, "127.0.0.1")
	verbstest.Run(t, verbstest.Config{Driven: true, Variant: []string{"Transfer"}, Allocates: "crypto/tls allocates for each record", Open: func(t testing.TB) verbs.Device {
		device, err := tcp.Open(tcp.Options{TLS: config, Silence: await.Limit})
		require.NoError(t, err)
		return device
	}})
}

// A peer with another certificate, or without TLS, is rejected; so is a key that is wrong
// inside of TLS.
func TestTLSRejects(t *testing.T) {
	ours, theirs := tlstest.Config(t, "127.0.0.1"), tlstest.Config(t, "127.0.0.1")
	key := proof.NewKey()
	for _, c := range []struct {
		name           string
		dials, accepts tcp.Options
		text           string
	}{
		{"another certificate", tcp.Options{TLS: ours}, tcp.Options{TLS: theirs}, "certificate"},
		{"no TLS on the side that calls", tcp.Options{}, tcp.Options{TLS: ours}, "it may demand TLS"},
		{"no TLS on the side that is called", tcp.Options{TLS: ours}, tcp.Options{}, "TLS, which the peer may not have"},
		{"another key", tcp.Options{TLS: ours, Key: key}, tcp.Options{TLS: ours}, "another key"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.dials.HandshakeLimit, c.accepts.HandshakeLimit = await.Limit, await.Limit
			near, far := openOptions(t, c.dials), openOptions(t, c.accepts)
			tcp.CallsAgainSoon(near)
			queue, err := near.CreateCompletionQueue(4)
			require.NoError(t, err)
			pair, err := near.Connect(far.Address(), nil, verbs.QueuePairConfig{SendQueue: queue, ReceiveQueue: queue})
			require.NoError(t, err)
			channel := near.Channel()
			for pair.State() == verbs.StateConnecting {
				ticket := channel.Prepare()
				if pair.State() == verbs.StateConnecting && queue.Poll(nil) == 0 {
					channel.Sleep(ticket, -1)
				}
				channel.Finish()
			}
			require.Equal(t, verbs.StateError, pair.State())
			require.ErrorContains(t, pair.Err(), c.text)
			require.Zero(t, far.PollConnections(make([]verbs.ConnectionRequest, 1)))
		})
	}
}

func TestTLSOptions(t *testing.T) {
	old := tlstest.Config(t, "127.0.0.1")
	old.MaxVersion = tls.VersionTLS12
	for config, text := range map[*tls.Config]string{
		{}:  "TLS has no certificate",
		old: "MaxVersion is TLS 1.2, the least allowed is TLS 1.3",
	} {
		_, err := tcp.Open(tcp.Options{TLS: config, Silence: await.Limit})
		require.ErrorContains(t, err, text)
	}
}

func openOptions(t testing.TB, options tcp.Options) verbs.Device {
	t.Helper()
	device, err := tcp.Open(options)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, device.Close()) })
	return device
}
