package main

import (
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/launchtest"
	"github.com/onesided/rma/internal/testsize"
)

// A job across hosts prints the same counts as one process, whatever the order in which its ranks start.
func TestAcrossHosts(t *testing.T) {
	program, top := launchtest.Build(t, "./examples/wordcount"), publicTree(t, 30)
	alone := countedAlone(t, program, top)
	for _, n := range []int{hosts, 2 * hosts} {
		c := &crew{ranks: make([]*process, n)}
		backwards, shuffled := c.inOrder(), testsize.Random(t, uint64(n)).Perm(n)
		slices.Reverse(backwards)
		orders := map[string][]int{"in order": c.inOrder(), "backwards": backwards, "shuffled": shuffled}
		if testsize.N(1) == 1 {
			// Each number of ranks gets another order, and no other test uses either order.
			kept := map[int]string{hosts: "backwards", 2 * hosts: "shuffled"}[n]
			orders = map[string][]int{kept: orders[kept]}
		}
		for name, order := range orders {
			t.Run(fmt.Sprintf("%d ranks/%s", n, name), func(t *testing.T) {
				t.Parallel()
				c := newCrew(t, n, nil, program, "-verify", top)
				c.startAll(order...)
				c.succeed(c.inOrder()...)
				for rank, p := range c.ranks {
					want := ""
					if rank == 0 {
						want = alone
					}
					require.Equal(t, want, p.out.String(), "rank %d", rank)
				}
			})
		}
	}
}

// Ranks of one host share memory. They reach ranks of other hosts over TCP, at the default address or at the one that
// RMA_ADDRESS selects.
func TestRoutesAcrossHosts(t *testing.T) {
	const ranks = hosts + 1 // two of these ranks share a host
	for _, address := range []string{"", "eth0", "198.18.0.0/24"} {
		t.Run("address "+strings.ReplaceAll(address, "/", "-"), func(t *testing.T) {
			t.Parallel()
			c := role(t, ranks, routesRole)
			c.environment = append(c.environment, "RMA_ADDRESS="+address)
			c.startAll(c.inOrder()...)
			c.succeed(c.inOrder()...)
			for rank, p := range c.ranks {
				var to []string
				for other := range c.ranks {
					switch {
					case other == rank:
						to = append(to, "self")
					case hostOf(other) == hostOf(rank):
						to = append(to, "shm, mapped")
					default:
						to = append(to, "tcp")
					}
				}
				require.Equal(t, sayRoutes(rank, to)+"\n", p.out.String())
			}
		})
	}
}

// Shared memory does not reach another host: all ranks return an error that says so.
func TestSharedMemoryAcrossHosts(t *testing.T) {
	c := role(t, hosts, routesRole)
	c.environment = append(c.environment, "RMA_DEVICE=shm")
	c.startAll(c.inOrder()...)
	for rank, p := range c.ranks {
		var exit *exec.ExitError
		require.ErrorAs(t, c.wait(rank), &exit)
		contains(t, p.said(), "reach rank ", "RMA_DEVICE allows shared memory only")
		require.Empty(t, p.out.String())
	}
}

const (
	// short is the silence after which a rank that is cut off counts as failed.
	short = 5 * time.Second
	// never is a silence that no rank reaches in a test. So ranks must notice failures by other means.
	never = time.Hour
)

// The link of a host is cut while all ranks write to all, in one epoch. Ranks of the other hosts lose the ranks of this
// host and continue with each other. The ranks of this host lose the others.
func TestCutInEpoch(t *testing.T) {
	var cuts []*cut
	plans := []struct{ ranks, host int }{{hosts, 0}, {2 * hosts, 2}, {hosts, 1}}
	if testsize.N(1) == 1 {
		// A plain run tries the host of rank 0, and one with several ranks.
		plans = plans[:2]
	}
	for _, c := range plans {
		cuts = append(cuts, cutInEpoch(t, c.ranks, c.host))
	}
	// All jobs are silent by now. The silence lasts while other tests run.
	t.Parallel()
	for _, c := range cuts {
		t.Run(fmt.Sprintf("%d ranks, host %d", len(c.ranks), c.host), func(t *testing.T) {
			c.t = t
			c.succeed(c.inOrder()...)
			t.Logf("%v from the cut to the end of all, %v of silence included", time.Since(c.at), short)
			away, rest := c.on(c.host), c.elsewhere(c.host)
			for _, rank := range rest {
				c.lost(rank, away...)
			}
			for _, rank := range away {
				c.lost(rank, rest...)
			}
		})
	}
}

// A cut is a crew whose host was cut off.
type cut struct {
	*crew
	host int
	at   time.Time
}

// cutInEpoch starts ranks that write to each other, and cuts a host off.
func cutInEpoch(t *testing.T, n, host int) *cut {
	t.Helper()
	c := role(t, n, hammerRole, short.String())
	away, rest := len(c.on(host)), len(c.elsewhere(host))
	c.arguments = func(rank int) []string {
		if hostOf(rank) == host {
			return []string{strconv.Itoa(rest)}
		}
		return []string{strconv.Itoa(away)}
	}
	c.startAll(c.inOrder()...)
	c.all("inside", inside)
	c.network.Cut(host)
	return &cut{c, host, time.Now()}
}

// A rank is killed while all ranks write to all. The other ranks learn of it from the system, not by its silence. A
// plain run kills one rank for each number of ranks.
func TestKilledInEpoch(t *testing.T) {
	for turn, n := range []int{hosts, 2 * hosts} {
		for _, killed := range testsize.Turns(turn, hosts, 1) {
			t.Run(fmt.Sprintf("%d ranks/rank %d", n, killed), func(t *testing.T) {
				t.Parallel()
				c := role(t, n, hammerRole, never.String(), "1")
				c.startAll(c.inOrder()...)
				c.all("inside", inside)
				begun := time.Now()
				require.NoError(t, c.ranks[killed].Process.Kill())
				others := slices.DeleteFunc(c.inOrder(), func(rank int) bool { return rank == killed })
				c.succeed(others...)
				t.Logf("%v from the kill to the end of all", time.Since(begun))
				for _, rank := range others {
					c.lost(rank, killed)
				}
			})
		}
	}
}

// The link of a host is cut in the middle of the count. Every rank ends with an error that names a rank beyond the cut.
func TestCutInJob(t *testing.T) {
	top := publicTree(t, 60)
	var cuts []*cut
	for _, host := range []int{0, 1} {
		c := role(t, hosts, countRole, short.String(), "-verify", top)
		c.startAll(c.inOrder()...)
		c.all("inside", inside)
		c.network.Cut(host)
		cuts = append(cuts, &cut{c, host, time.Now()})
		c.goOn()
	}
	t.Parallel()
	for _, c := range cuts {
		t.Run(fmt.Sprintf("host %d", c.host), func(t *testing.T) {
			c.t = t
			c.all("failed", failed)
			for _, rank := range c.elsewhere(c.host) {
				c.fails(rank, c.on(c.host)...)
			}
			for _, rank := range c.on(c.host) {
				c.fails(rank, c.elsewhere(c.host)...)
			}
		})
	}
}

// A link that is cut and joined before any rank counts as failed only costs time.
func TestCutAndJoined(t *testing.T) {
	t.Parallel()
	top := publicTree(t, 30)
	c := role(t, hosts, countRole, never.String(), "-verify", top)
	c.startAll(c.inOrder()...)
	c.all("inside", inside)
	c.network.Cut(1)
	c.goOn()
	c.network.Join(1)
	c.succeed(c.inOrder()...)
	require.Equal(t, countedAlone(t, launchtest.Build(t, "./examples/wordcount"), top), c.ranks[0].out.String())
}

// goOn releases the ranks that wait for a line of input.
func (c *crew) goOn() {
	c.t.Helper()
	for _, p := range c.ranks {
		_, err := fmt.Fprintln(p.input)
		require.NoError(c.t, err)
	}
}

// fails checks that a rank ends with an error that names one of the missing ranks.
func (c *crew) fails(rank int, missing ...int) {
	c.t.Helper()
	require.NoError(c.t, c.ranks[rank].input.Close())
	var exit *exec.ExitError
	require.ErrorAs(c.t, c.wait(rank), &exit)
	said := c.ranks[rank].said()
	require.True(c.t, slices.ContainsFunc(missing, func(other int) bool {
		return strings.Contains(said, fmt.Sprintf("rank %d has ", other))
	}), "rank %d does not name one of %d: %s", rank, missing, said)
	require.Empty(c.t, c.ranks[rank].out.String())
}
