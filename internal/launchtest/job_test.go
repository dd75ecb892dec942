package launchtest_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/launchtest"
	"github.com/onesided/rma/internal/testsize"
)

// Variables that a test adds to a command's environment reach all ranks. A shell in front of the program can set others
// for each rank.
func TestEnvironment(t *testing.T) {
	t.Setenv("PMI_RANK", "7")
	t.Setenv("SLURM_JOB_ID", "7")
	program := launchtest.Self(t)
	t.Run("slurm", func(t *testing.T) {
		cluster := launchtest.SharedSlurm(t, 2)
		command := cluster.Command(t.Context(), "--mpi=pmi2", "-N", "2", "-n", "4", "--ntasks-per-node", "2",
			"sh", "-c", `PLACE=h$SLURM_NODEID exec "$0"`, program)
		command.Env = append(command.Env, roleVariable+"=hello", "COMMON=everywhere")
		output, err := command.CombinedOutput()
		require.NoError(t, err, "%s", output)
		for rank := range 4 {
			want := fmt.Sprintf("rank %d of 4: node=%d place=h%d common=everywhere\n", rank, rank/2, rank/2)
			require.Contains(t, string(output), want)
		}
	})
	t.Run("hydra", func(t *testing.T) {
		output, err := launchtest.Hydra(t, 2, []string{roleVariable + "=hello", "COMMON=everywhere"}, program).CombinedOutput()
		require.NoError(t, err, "%s", output)
		for rank := range 2 {
			require.Contains(t, string(output), fmt.Sprintf("rank %d of 2: node= place= common=everywhere\n", rank))
		}
	})
}

// A rank that ends without finalizing makes the job fail. The job does not hang, and no process of it is left.
func TestRankFails(t *testing.T) {
	t.Parallel()
	program := launchtest.Self(t)
	t.Run("hydra", func(t *testing.T) {
		output, err := launchtest.Hydra(t, 4, []string{roleVariable + "=fails"}, program).CombinedOutput()
		require.NotZero(t, exitStatus(t, err))
		requireGone(t, pids(t, 4, string(output)))
		require.NotContains(t, string(output), "rank 0 of 4")
	})
	var ranks []int
	t.Run("slurm", func(t *testing.T) {
		cluster := launchtest.Slurm(t, 2)
		for i, flags := range [][]string{nil, {"-K1"}} {
			if !testsize.Turn(i, 2) {
				continue
			}
			command := cluster.Command(t.Context(), append(flags, "--mpi=pmi2", "-N", "2", "-n", "4", "--ntasks-per-node", "2", program)...)
			command.Env = append(command.Env, roleVariable+"=fails")
			output, err := command.CombinedOutput()
			require.NotZero(t, exitStatus(t, err))
			ranks = append(ranks, pids(t, 4, string(output))...)
			require.NotContains(t, string(output), "rank 0 of 4")
		}
	})
	requireGone(t, ranks)
}
