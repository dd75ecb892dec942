package main

import (
	"bufio"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/launchtest"
)

// A launcher is killed while its ranks write to all, or while they wait in the exchange for a rank that does not join.
// No rank outlives the launcher.
func TestLauncherKilled(t *testing.T) {
	for _, c := range []struct {
		name  string
		start starter
	}{
		{"rmarun", byRmarun},
		{"hydra", byHydra},
		{"slurm", bySlurm},
	} {
		for _, role := range []string{orphanRole, absentRole} {
			t.Run(c.name+", "+role, func(t *testing.T) {
				t.Parallel()
				command := c.start(t, append(overTCP.environment(), as(role)...), launchtest.Self(t))
				out, err := command.StdoutPipe()
				require.NoError(t, err)
				require.NoError(t, command.Start())
				ranks := awaitRanks(t, bufio.NewScanner(out))
				// If the process is a supervisor, the launcher dies with it, and nothing ends what the launcher has
				// started.
				require.NoError(t, command.Process.Kill())
				begun := time.Now()
				for _, rank := range ranks {
					rank.AwaitEnd(t)
				}
				t.Logf("%v from the kill to the end of all", time.Since(begun))
				require.Error(t, command.Wait())
			})
		}
	}
}

// awaitRanks reads the output of ranks until all have reported that they are ready.
func awaitRanks(t *testing.T, lines *bufio.Scanner) (ranks []*launchtest.Process) {
	t.Helper()
	for len(ranks) < launchedRanks {
		require.True(t, lines.Scan(), "%d of %d ranks have come", len(ranks), launchedRanks)
		var pid int
		if n, _ := fmt.Sscanf(lines.Text(), readyFormat, &pid); n == 1 {
			ranks = append(ranks, launchtest.ProcessOf(t, pid))
		}
	}
	return ranks
}
