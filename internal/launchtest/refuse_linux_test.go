package launchtest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/launchtest"
)

// A witness is a test that records why it ends.
type witness struct {
	testing.TB
	fatal, skipped string
}

func (w *witness) Helper() {}

func (w *witness) Fatal(arguments ...any) {
	w.fatal = fmt.Sprint(arguments...)
	runtime.Goexit()
}

func (w *witness) Fatalf(format string, arguments ...any) { w.Fatal(fmt.Sprintf(format, arguments...)) }

func (w *witness) Skipf(format string, arguments ...any) {
	w.skipped = fmt.Sprintf(format, arguments...)
	runtime.Goexit()
}

// see runs a function that is to end a test.
func see(t *testing.T, f func(testing.TB)) *witness {
	w := &witness{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(w)
	}()
	<-done
	return w
}

// Wrong arguments and missing programs are reported before anything is started.
func TestRefusals(t *testing.T) {
	for nodes, says := range map[int]string{
		0:  "launchtest: Slurm of 0 nodes: from 1 to 64 are possible",
		65: "launchtest: Slurm of 65 nodes: from 1 to 64 are possible",
	} {
		require.Equal(t, says, see(t, func(t testing.TB) { launchtest.Slurm(t, nodes) }).fatal)
	}
	require.Contains(t, see(t, func(t testing.TB) { launchtest.Build(t, "./no/such/program") }).fatal, "launchtest: building ./no/such/program: exit status 1")
	t.Setenv("PATH", t.TempDir())
	require.Equal(t, "skipped: mpiexec.hydra is not installed", see(t, func(t testing.TB) { launchtest.Hydra(t, 2, nil, "true") }).skipped)
	require.Equal(t, "skipped: srun is not installed", see(t, func(t testing.TB) { launchtest.Slurm(t, 2) }).skipped)
	require.Equal(t, "skipped: srun is not installed", see(t, func(t testing.TB) { launchtest.SharedSlurm(t, 1) }).skipped)
}

// A Slurm that is installed but does not start fails the test of root, and skips that of others. The daemons here only
// say something.
func TestBrokenSlurm(t *testing.T) {
	dir := launchtest.Directory(t)
	for _, program := range []string{"srun", "sinfo", "slurmctld", "slurmd", "munged"} {
		// A process that another test starts meanwhile would have the file open for writing: it could not be run.
		syscall.ForkLock.RLock()
		err := os.WriteFile(filepath.Join(dir, program), []byte("#!/bin/sh\necho $0 refused; exit 4\n"), 0o755)
		syscall.ForkLock.RUnlock()
		require.NoError(t, err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	// No other test shares a cluster of as many nodes.
	const nodes = 9
	for _, start := range []func(testing.TB){
		func(t testing.TB) { launchtest.Slurm(t, nodes) },
		func(t testing.TB) { launchtest.SharedSlurm(t, nodes) },
		func(t testing.TB) { launchtest.SharedSlurm(t, nodes) },
	} {
		w := see(t, start)
		says, other := w.fatal, w.skipped
		if os.Geteuid() != 0 || launchtest.BecomesUnprivileged() != nil {
			says, other = w.skipped, w.fatal
			require.Contains(t, says, "skipped: ")
		}
		require.Contains(t, says, "Slurm is installed but does not start")
		require.Contains(t, says, " refused\n")
		require.Empty(t, other)
	}
}

// A cluster is shared by those who ask for as many nodes, and no others.
func TestShared(t *testing.T) {
	t.Parallel()
	first, again := launchtest.SharedSlurm(t, 2), launchtest.SharedSlurm(t, 2)
	job := []string{"-N", "1", "-n", "1", "sh", "-c", "echo $SLURM_CONF"}
	require.Equal(t, first.Run(t, job...), again.Run(t, job...))
	require.NotEqual(t, first.Run(t, job...), launchtest.SharedSlurm(t, 1).Run(t, job...))
}

// A job that fails under srun fails its test, with the output of the job.
func TestRunFails(t *testing.T) {
	t.Parallel()
	cluster := launchtest.SharedSlurm(t, 2)
	w := see(t, func(t testing.TB) { cluster.Run(t, "-n", "2", "sh", "-c", "echo to say; echo to err >&2; exit 3") })
	require.Contains(t, w.fatal, "launchtest: srun -n 2 sh -c ")
	require.Contains(t, w.fatal, "exit status 3\nto say\nto say\n")
	require.Contains(t, w.fatal, "to err\n")
}
