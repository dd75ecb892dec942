package job

import (
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/tuning"
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
	s, err = newSettings([]Option{Tune(func(t *tuning.Tuning) { t.MTU = 1024 })})
	require.NoError(t, err)
	require.Equal(t, ibv.Options{Device: "mlx5_7:2", GID: "3", MTU: 1024}, s.rdmaOptions())
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
		oversubscribed := make([]bool, len(c.ranks))
		for i := range oversubscribed {
			oversubscribed[i] = j.oversubscribed(i)
		}
		require.Equal(t, c.want, oversubscribed, c.name)
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

// Ranks of a host share memory if each of them has descriptors for that. If not, all of them say which has too few.
func TestLimitSharing(t *testing.T) {
	two, three := sharingDescriptors(1, 0, 1), sharingDescriptors(2, 0, 1)
	far := func(devices int) int { return sharingDescriptors(1, 2, devices) }
	at := func(host string, descriptors int) introduction {
		return introduction{machine: "m", host: host, descriptors: descriptors}
	}
	with := func(i introduction, cards int) introduction {
		i.rdma = cards
		return i
	}
	for _, c := range []struct {
		name      string
		ranks     []introduction
		addresses int
		shares    []bool
		says      string
	}{
		{"all have enough", []introduction{at("a", three), at("a", three), at("a", 1<<14)}, 1, []bool{true, true, true}, ""},
		{"the last is short", []introduction{at("a", three), at("a", three), at("a", three-1)}, 1, []bool{false, false, false}, fmt.Sprintf("share memory among 3 ranks: rank 2 needs %d free file descriptors and has %d: raise RLIMIT_NOFILE (ulimit -n) by 1", three, three-1)},
		{"two are short", []introduction{at("a", three), at("a", 0), at("a", 0)}, 1, []bool{false, false, false}, "rank 1 needs"},
		{"they need none of a network", []introduction{at("a", two), at("a", two)}, 3, []bool{true, true}, ""},
		{"one host of two is short", []introduction{at("a", far(1)), at("b", far(1)-1), at("a", far(1)), at("b", far(1))}, 1, []bool{true, false, true, false}, "share memory among 2 ranks: rank 1 needs"},
		{"for two addresses", []introduction{at("a", far(2)), at("b", far(2)-1), at("a", far(2)), at("b", far(2))}, 2, []bool{true, false, true, false}, "share memory among 2 ranks: rank 1 needs"},
		{"for three cards", []introduction{with(at("a", far(3)), 3), with(at("b", far(3)-1), 3), with(at("a", far(3)), 3), with(at("b", far(3)), 3)}, 1, []bool{true, false, true, false}, "share memory among 2 ranks: rank 1 needs"},
		{"cards that one has not", []introduction{with(at("a", far(1)), 3), at("b", far(1)), at("a", far(1)), at("b", far(1))}, 1, []bool{true, true, true, true}, ""},
		{"one rank", []introduction{at("a", 0)}, 1, []bool{true}, ""},
		{"a rank to a host", []introduction{at("a", 0), at("b", 0)}, 1, []bool{true, true}, ""},
		{"ranks that share none anyway", []introduction{at("", 0), at("a", far(1)), at("", 0), at("a", far(1))}, 1, []bool{false, true, false, true}, ""},
		{"more than are counted", slices.Repeat([]introduction{at("a", mostCounted)}, mostCounted), 1, slices.Repeat([]bool{true}, mostCounted), ""},
	} {
		before := slices.Clone(c.ranks)
		limitSharing(c.ranks, "", c.addresses)
		for rank := range c.ranks {
			one := &c.ranks[rank]
			require.Equal(t, c.shares[rank], one.host != "", "%s: rank %d", c.name, rank)
			if one.host == before[rank].host {
				require.NoError(t, one.unshared, c.name)
				continue
			}
			require.ErrorIs(t, one.unshared, errors.ErrUnsupported, c.name)
			require.ErrorContains(t, one.unshared, c.says, c.name)
			_, err := cardsOf(c.ranks, rank, shmDevice)
			require.Equal(t, one.unshared, err, c.name)
			wanted, err := cardsOf(c.ranks, rank, "")
			require.NoError(t, err, c.name)
			require.Equal(t, [cardKinds]bool{networkCard: true}, wanted, c.name)
		}
	}
}

// A rank's neighbors are the living ranks of its host, unless that shares no memory.
func TestCountRanks(t *testing.T) {
	here, there, nowhere := introduction{host: "a"}, introduction{host: "b"}, introduction{}
	for _, c := range []struct {
		ranks []introduction
		gone  int
		want  rankCounts
	}{
		{[]introduction{here}, -1, rankCounts{}},
		{[]introduction{here, here, there, here}, -1, rankCounts{2, 1}},
		{[]introduction{here, here, there, here}, 1, rankCounts{1, 1}},
		{[]introduction{here, here, there, here}, 2, rankCounts{2, 0}},
		{[]introduction{nowhere, nowhere, there}, -1, rankCounts{0, 2}},
	} {
		require.Equal(t, c.want, countRanks(c.ranks, 0, func(rank int) bool { return rank == c.gone }), "%+v", c)
	}
}
