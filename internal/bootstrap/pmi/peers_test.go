package pmi

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// rankVariable makes a process of this test binary a rank of a manager.
const rankVariable = "PMI_TEST_RANK"

// roles has what a rank does, by the value of rankVariable. For other values it is play.
var roles = make(map[string]func(ctx context.Context) error)

func TestMain(m *testing.M) {
	if os.Getenv(rankVariable) == "" {
		os.Exit(m.Run())
	}
	part := play
	if other, ok := roles[os.Getenv(rankVariable)]; ok {
		part = other
	}
	if err := part(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// play is a rank that puts a long value and gets the value of each rank.
func play(ctx context.Context) error {
	c, err := FromEnvironment()
	if err != nil {
		return err
	}
	long := strings.Repeat("x", 3000)
	if err := c.Put(fmt.Sprint("rank-", c.Rank()), fmt.Sprint(c.Rank(), long)); err != nil {
		return err
	}
	if err := c.Barrier(ctx); err != nil {
		return err
	}
	for rank := range c.Size() {
		value, err := c.Get(fmt.Sprint("rank-", rank))
		if err != nil {
			return err
		}
		if want := fmt.Sprint(rank, long); value != want {
			return fmt.Errorf("rank %d says %q, want %q", rank, value, want)
		}
	}
	if _, err := c.Get("nothing"); !errors.Is(err, ErrNotFound) {
		return fmt.Errorf("what no rank has put gives %v, want %v", err, ErrNotFound)
	}
	if err := c.Barrier(ctx); err != nil {
		return err
	}
	if err := c.Finalize(); err != nil {
		return err
	}
	// Hydra serves one job a process.
	if _, err := FromEnvironment(); !errors.Is(err, ErrTaken) {
		return fmt.Errorf("the connection that is finalized gives %v, want %v", err, ErrTaken)
	}
	fmt.Printf("rank %d of %d is done\n", c.Rank(), c.Size())
	return nil
}

// find skips the test if a program is not installed.
func find(t *testing.T, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Skipf("skipped: %s is not installed", program)
	}
	return path
}

// TestUnderHydra makes Hydra start four processes of this binary, which connect by an inherited descriptor or by a
// port.
func TestUnderHydra(t *testing.T) {
	mpiexec := find(t, "mpiexec.hydra")
	binary, err := os.Executable()
	require.NoError(t, err)
	for _, flags := range [][]string{nil, {"-pmi-port"}} {
		t.Run(strings.Join(append([]string{"hydra"}, flags...), " "), func(t *testing.T) {
			command := exec.CommandContext(t.Context(), mpiexec, append(flags, "-n", "4", binary)...)
			command.Env = append(os.Environ(), rankVariable+"=1", "GORACE=atexit_sleep_ms=0")
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

// TestMPICH serves a program of MPICH, which has its own client.
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
				// Without /dev/shm, MPICH's libraries print complaints first.
				sum := fmt.Sprintf("%d of %d: %d\n", rank, size, size*(size-1)/2)
				require.True(t, strings.HasSuffix("\n"+outputs[rank], "\n"+sum), "the last line is to be %q:\n%s", sum, outputs[rank])
			}
		})
	}
}
