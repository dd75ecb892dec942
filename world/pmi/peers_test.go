package pmi

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// childVariable tells a process of this test binary that it is a rank.
const childVariable = "PMI_TEST_CHILD"

// TestRank is what a rank does that Hydra has started.
func TestRank(t *testing.T) {
	if os.Getenv(childVariable) == "" {
		t.Skip("skipped: this is for processes that a manager has started")
	}
	c, err := FromEnvironment()
	require.NoError(t, err)
	long := strings.Repeat("x", 3000)
	require.NoError(t, c.Put(fmt.Sprint("rank-", c.Rank()), fmt.Sprint(c.Rank(), long)))
	require.NoError(t, c.Barrier(t.Context()))
	for rank := range c.Size() {
		value, err := c.Get(fmt.Sprint("rank-", rank))
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint(rank, long), value)
	}
	_, err = c.Get("nothing")
	require.ErrorIs(t, err, ErrNotFound)
	require.NoError(t, c.Barrier(t.Context()))
	require.NoError(t, c.Finalize())
	fmt.Printf("rank %d of %d is done\n", c.Rank(), c.Size())
}

// find skips the test where a program is not installed.
func find(t *testing.T, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Skipf("skipped: %s is not installed", program)
	}
	return path
}

// TestUnderHydra has Hydra start four processes of this binary, by an inherited
// descriptor and by a port.
func TestUnderHydra(t *testing.T) {
	mpiexec := find(t, "mpiexec.hydra")
	binary, err := os.Executable()
	require.NoError(t, err)
	for _, flags := range [][]string{nil, {"-pmi-port"}} {
		t.Run(strings.Join(append([]string{"hydra"}, flags...), " "), func(t *testing.T) {
			command := exec.CommandContext(t.Context(), mpiexec, append(flags, "-n", "4", binary, "-test.run", "^TestRank$", "-test.v")...)
			command.Env = append(os.Environ(), childVariable+"=1")
			output, err := command.CombinedOutput()
			require.NoError(t, err, "%s", output)
			for rank := range 4 {
				require.Contains(t, string(output), fmt.Sprintf("rank %d of 4 is done", rank))
			}
		})
	}
}

const mpiProgram = `
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv) {
	int rank, size, sum = 0;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	printf("%d of %d: %d\n", rank, size, sum);
	MPI_Finalize();
	return 0;
}
`

// TestMPICH serves a program of MPICH, whose client is not ours.
func TestMPICH(t *testing.T) {
	mpicc := find(t, "mpicc.mpich")
	dir := t.TempDir()
	source, program := filepath.Join(dir, "sum.c"), filepath.Join(dir, "sum")
	require.NoError(t, os.WriteFile(source, []byte(mpiProgram), 0o600))
	output, err := exec.CommandContext(t.Context(), mpicc, "-o", program, source).CombinedOutput()
	require.NoError(t, err, "%s", output)
	for _, size := range []int{1, 2, 4} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			s := NewServer(size, Events{Gone: func(rank int) { t.Errorf("rank %d is said to be gone", rank) }})
			defer s.Close()
			var all sync.WaitGroup
			outputs, errs := make([]string, size), make([]error, size)
			for rank := range size {
				file, environment, err := s.Child(rank, 3)
				require.NoError(t, err)
				command := exec.CommandContext(t.Context(), program)
				command.Env = append(os.Environ(), environment...)
				command.ExtraFiles = []*os.File{file}
				all.Go(func() {
					output, err := command.CombinedOutput()
					outputs[rank], errs[rank] = string(output), err
				})
				t.Cleanup(func() { _ = file.Close() })
			}
			all.Wait()
			for rank := range size {
				require.NoError(t, errs[rank], "rank %d: %s", rank, outputs[rank])
				require.Equal(t, fmt.Sprintf("%d of %d: %d\n", rank, size, size*(size-1)/2), outputs[rank])
			}
		})
	}
}
