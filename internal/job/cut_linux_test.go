package job_test

import (
	"errors"
	"fmt"
	"os/exec"
	"testing"

	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/internal/nettest"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/world"
	"github.com/stretchr/testify/require"
)

// startAcross starts a job on a network of its own, rank by rank on the hosts that host
// says. The manager is not cut off from anyone.
func startAcross(t *testing.T, hosts, n int, name string, host func(rank int) int, more func(rank int) []string) (*jobtest.Job, *nettest.Network) {
	t.Helper()
	network := nettest.New(t, hosts)
	environment := func(rank int) []string {
		return append([]string{"RMA_DEVICE=", "RMA_HOST=", "RMA_ADDRESS="}, more(rank)...)
	}
	job := jobtest.StartOn(t, n, name, environment, func(rank int, program string) *exec.Cmd {
		return network.Command(host(rank), program)
	})
	return job, network
}

func nothingMore(int) []string { return nil }

// sides has the ranks of each of two hosts shrink their World after they have been cut
// off from the other. This rank's side is who it shares memory with.
var sides = registerWithSilence("cut off and shrinking", silenceOfStopped, func(s *script) {
	var mine []int
	for rank := range s.n {
		if s.World.Mapped(rank) {
			mine = append(mine, rank)
		}
	}
	works(s, s.World, s.n)
	s.OK(jobtest.Hold("ready"))
	var lost *world.PeerError
	err := repeat(s, waits["Barrier"])
	s.Check(errors.As(err, &lost), "error is %v, want a *world.PeerError", err)
	s.Check(!s.World.Mapped(lost.Rank), "rank %d of this side is said to have failed: %v", lost.Rank, err)
	small, err := s.World.Shrink(s.Ctx)
	s.OK(err)
	works(s, small, len(mine))
	for rank := range s.n {
		s.Check((s.World.Err(rank) == nil) == s.World.Mapped(rank), "rank %d, mapped: %v, has failed: %v", rank, s.World.Mapped(rank), s.World.Err(rank))
	}
	s.OK(jobtest.Hold("shrunk"))
	works(s, small, len(mine))
	s.OK(s.World.Close())
	works(s, small, len(mine))
	s.OK(small.Close())
})

// Hosts that are cut off from each other take each other for dead. Shrink gives each side
// a World of its own, and they stay apart when the link is there again.
func TestShrinkAfterCut(t *testing.T) {
	t.Parallel()
	const n = 5
	for first := range 2 {
		if !testsize.Turn(first, 2) {
			continue
		}
		t.Run(fmt.Sprintf("rank 0 on host %d", first), func(t *testing.T) {
			jobtest.SilentPeers.Acquire(t)
			job, network := startAcross(t, 2, n, sides, func(rank int) int { return (rank + first) % 2 }, nothingMore)
			each(n, func(rank int) { job.Await(rank, "ready") })
			network.Cut(1)
			each(n, job.Release)
			each(n, func(rank int) { job.Await(rank, "shrunk") })
			network.Join(1)
			each(n, job.Release)
			for rank, err := range job.Wait() {
				require.NoError(t, err, "rank %d", rank)
			}
		})
	}
}
