package window_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/window"
)

// blockRanks is a number of ranks on two hosts of which most have no links with the other host for what they do.
const blockRanks = 8

// missedStopped has all ranks but one, which stops itself, wait in a Fence of an epoch without operations. It may be
// the first Fence, before which no rank knows which ranks are on other hosts.
func missedStopped(first bool) func(s *script) {
	return func(s *script) {
		win := allocate[int64](s, 1)
		if !first {
			s.OK(win.Fence(s.Ctx, window.NoPrecede))
		}
		s.OK(jobtest.Hold("ready"))
		if fmt.Sprint(s.World.Rank()) == os.Getenv(victimVariable) {
			s.OK(jobtest.Stop())
			return
		}
		expectDeath(s, win, win.Fence(s.Ctx, window.NoPrecede))
		s.OK(jobtest.Hold("survived"))
	}
}

var missedStoppedBodies = []string{
	registerImpatient("stopped before the first fence of hosts", missedStopped(true)),
	registerImpatient("stopped before another fence of hosts", missedStopped(false)),
}

// missedRanks are ranks that stop: those that speak for a host, and others.
var missedRanks = []int{0, 1, 6}

// The ranks of its own host also learn that a rank has stopped. They do not watch each other: ranks of other hosts
// notify them.
func TestStoppedAmongMates(t *testing.T) {
	t.Parallel()
	for turn, body := range missedStoppedBodies {
		for _, i := range testsize.Turns(turn, len(missedRanks), 1) {
			stops := missedRanks[i]
			t.Run(fmt.Sprintf("%s/rank %d", body, stops), func(t *testing.T) {
				jobtest.SilentPeers.Acquire(t)
				job := jobtest.StartWith(t, blockRanks, body, func(rank int) []string {
					return []string{"RMA_DEVICE=", fmt.Sprintf("RMA_HOST=host%d", rank/(blockRanks/2)), fmt.Sprintf("%s=%d", victimVariable, stops)}
				})
				others := func(do func(rank int)) {
					for rank := range blockRanks {
						if rank != stops {
							do(rank)
						}
					}
				}
				job.Await(stops, "ready")
				others(func(rank int) { job.Await(rank, "ready") })
				job.Release(stops)
				others(job.Release)
				others(func(rank int) { job.Await(rank, "survived") })
				job.Kill(stops)
				others(job.Release)
				for rank, err := range job.Wait() {
					require.Equal(t, rank == stops, err != nil, "rank %d: %v", rank, err)
				}
			})
		}
	}
}
