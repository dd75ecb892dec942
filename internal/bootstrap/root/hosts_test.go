package root

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/bootstrap/address"
	"github.com/onesided/rma/internal/nettest"
)

// whereVariable has the address that a rank must choose.
const whereVariable = "RMA_ROOT_TEST_WHERE"

func init() {
	// far is a rank that puts its address and checks those of all ranks.
	roles["far"] = func() error {
		s, err := FromEnvironment(nil)
		if err != nil {
			return err
		}
		// The test waits until the root has noticed that a host is cut off.
		s.Silence = 2 * time.Second
		m, err := Join(context.Background(), s, ample)
		if err != nil {
			return err
		}
		mine, err := address.Default(context.Background())
		if err != nil {
			return err
		}
		if where := os.Getenv(whereVariable); mine.String() != where {
			return fmt.Errorf("chose %s, not %s", mine, where)
		}
		if err := m.Put(fmt.Sprint("of-", m.Rank()), mine.String()); err != nil {
			return err
		}
		if err := m.Barrier(context.Background()); err != nil {
			return err
		}
		if err := order("working"); err != nil {
			return err
		}
		for rank := range m.Size() {
			text, err := m.Get(fmt.Sprint("of-", rank))
			if err != nil {
				return err
			}
			if other, err := netip.ParseAddr(text); err != nil || (other == mine) != (rank == m.Rank()) {
				return fmt.Errorf("rank %d is at %s, rank %d at %s", rank, text, m.Rank(), mine)
			}
		}
		return m.Finalize()
	}
}

// hosts returns a job with a rank on each host of a network.
func hosts(t *testing.T, size int) (job, *nettest.Network) {
	t.Helper()
	network := nettest.New(t, size)
	j := newJob(t, size)
	j.root = fmt.Sprintf("%s:7000", network.Address(0))
	return j, network
}

func (j job) startOn(network *nettest.Network, role string, rank int) *process {
	j.t.Helper()
	command := network.Command(rank, program(j.t))
	command.Env = append(command.Env, whereVariable+"="+network.Address(rank).String())
	return j.startAs(command, role, rank)
}

func TestAcrossHosts(t *testing.T) {
	t.Parallel()
	j, network := hosts(t, 3)
	ranks := make([]*process, j.size)
	for _, rank := range []int{1, 0, 2} {
		ranks[rank] = j.startOn(network, "far", rank)
	}
	for _, p := range ranks {
		require.Equal(t, "working", p.next())
	}
	for _, p := range ranks {
		p.goOn(t)
	}
	for _, p := range ranks {
		require.Equal(t, "done", p.next())
	}
}

func TestHostThatIsCutOffDoesNotEndTheJob(t *testing.T) {
	t.Parallel()
	j, network := hosts(t, 3)
	var ranks []*process
	for rank := range j.size {
		ranks = append(ranks, j.startOn(network, "far", rank))
	}
	for _, p := range ranks {
		require.Equal(t, "working", p.next())
	}
	network.Cut(2)
	for _, rank := range []int{0, 1} {
		ranks[rank].goOn(t)
	}
	for _, rank := range []int{0, 1} {
		require.Equal(t, "done", ranks[rank].next(), "rank %d", rank)
	}
}

func TestRootIsCutOffFromARankThatNeedsIt(t *testing.T) {
	t.Parallel()
	j, network := hosts(t, 2)
	ranks := []*process{j.startOn(network, "far", 0), j.startOn(network, "far", 1)}
	for _, p := range ranks {
		require.Equal(t, "working", p.next())
	}
	network.Cut(0)
	ranks[1].goOn(t)
	said := ranks[1].next()
	require.True(t, strings.HasPrefix(said, "failed pmi: get_result: root: connection lost: rank 0, which serves the exchange at "+j.root), said)
}

func TestRootOnAHostThatIsCutOff(t *testing.T) {
	t.Parallel()
	j, network := hosts(t, 2)
	network.Cut(0)
	said := j.startOn(network, "hasty", 1).next()
	require.True(t, strings.HasPrefix(said, "failed root: no root: rank 1 got no answer at "+j.root), said)
}
