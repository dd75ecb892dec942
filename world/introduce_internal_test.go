package world

import (
	"crypto/tls"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/ibv"
)

// What is to be encrypted does not go over an RDMA card, which does not encrypt.
func TestEncryptedNeedsNoRDMA(t *testing.T) {
	s, err := newSettings([]Option{WithTLS(&tls.Config{}), WithDevice("")})
	require.NoError(t, err)
	var me introduction
	require.NoError(t, me.findRDMA(s))
	require.False(t, me.rdma)

	s.device = ibvDevice
	var unable *verbs.CapabilityError
	require.ErrorAs(t, me.findRDMA(s), &unable)
	require.Equal(t, "encrypt", unable.Capability)
}

func TestRDMAOptions(t *testing.T) {
	t.Setenv("RMA_IBV_DEVICE", "mlx5_7:2")
	t.Setenv("RMA_IBV_GID", "3")
	s, err := newSettings(nil)
	require.NoError(t, err)
	require.Equal(t, ibv.Options{Device: "mlx5_7:2", GID: "3"}, s.rdmaOptions())
	s, err = newSettings([]Option{WithRDMA(func(o *ibv.Options) { o.OnDemand, o.MTU = true, 1024 })})
	require.NoError(t, err)
	require.Equal(t, ibv.Options{Device: "mlx5_7:2", GID: "3", OnDemand: true, MTU: 1024}, s.rdmaOptions())
}

func TestNetworkOfRanks(t *testing.T) {
	for _, c := range []struct {
		name  string
		ranks []introduction
		want  string
	}{
		{"no card", []introduction{{}, {}}, tcpDevice},
		{"a card each", []introduction{{rdma: true}, {rdma: true}}, ibvDevice},
		{"one without", []introduction{{rdma: true}, {}, {rdma: true}}, tcpDevice},
		{"told to", []introduction{{device: ibvDevice, rdma: true}, {device: ibvDevice, rdma: true}}, ibvDevice},
		{"told not to", []introduction{{device: tcpDevice}, {device: tcpDevice}}, tcpDevice},
	} {
		require.Equal(t, c.want, networkOf(c.ranks), c.name)
	}
}
