package world

import (
	"crypto/tls"
	"slices"
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
	require.Zero(t, me.rdma)

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

// Ranks are more than cores only where they share them.
func TestBound(t *testing.T) {
	rank := func(machine, bound string, cores int) introduction {
		return introduction{machine: machine, bound: bound, cores: cores, all: 4}
	}
	for _, c := range []struct {
		name  string
		ranks []introduction
		want  []bool
	}{
		{"two ranks on all of two cores", []introduction{rank("a", "x", 2), rank("a", "x", 2)}, []bool{false, false}},
		{"a core each", []introduction{rank("a", "x", 1), rank("a", "y", 1)}, []bool{false, false}},
		{"both on one core", []introduction{rank("a", "x", 1), rank("a", "x", 1)}, []bool{true, true}},
		{"two of three on one core", []introduction{rank("a", "x", 1), rank("a", "y", 1), rank("a", "x", 1)}, []bool{true, false, true}},
		{"one core of each machine", []introduction{rank("a", "x", 1), rank("b", "x", 1)}, []bool{false, false}},
		{"cores that overlap, but enough", []introduction{rank("a", "w", 2), rank("a", "x", 2), rank("a", "y", 2)}, []bool{false, false, false}},
		{"each on one of four, and one on all", []introduction{rank("a", "v", 1), rank("a", "w", 1), rank("a", "x", 1), rank("a", "y", 1), rank("a", "z", 4)}, []bool{true, true, true, true, true}},
		{"another machine beside such a one", []introduction{rank("a", "w", 3), rank("b", "x", 2), rank("a", "y", 2)}, []bool{false, false, false}},
		{"a machine that does not tell", []introduction{rank("a", "", 1), rank("a", "", 1)}, []bool{true, true}},
	} {
		found := contact{addresses: [cardKinds]string{sharedCard: "shm"}}
		j, err := newJob(c.ranks, slices.Repeat([]string{found.text()}, len(c.ranks)))
		require.NoError(t, err, c.name)
		crowded := make([]bool, len(c.ranks))
		for i := range crowded {
			crowded[i] = j.crowds(i)
		}
		require.Equal(t, c.want, crowded, c.name)
		require.Equal(t, slices.Contains(c.want, true), j.rooted, c.name)
	}
}

func TestNetworkOfRanks(t *testing.T) {
	for _, c := range []struct {
		name, device string
		ranks        []introduction
		want         string
	}{
		{"no card", "", []introduction{{}, {}}, tcpDevice},
		{"a card each", "", []introduction{{rdma: 1}, {rdma: 1}}, ibvDevice},
		{"one without", "", []introduction{{rdma: 1}, {}, {rdma: 1}}, tcpDevice},
		{"told to", ibvDevice, []introduction{{rdma: 1}, {rdma: 1}}, ibvDevice},
		{"told not to", tcpDevice, []introduction{{}, {}}, tcpDevice},
	} {
		require.Equal(t, c.want, networkOf(c.ranks, c.device), c.name)
	}
}
