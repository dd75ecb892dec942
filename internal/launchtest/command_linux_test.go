package launchtest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/testsize"
)

// A supervisor passes the status of its command on, or prints why the command did not end by itself.
func TestStatus(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		how     supervisorConfig
		command []string
		status  int
		says    string
	}{
		{"success", supervisorConfig{}, []string{"sh", "-c", "echo hello"}, 0, "hello\n"},
		{"failure", supervisorConfig{}, []string{"sh", "-c", "echo oh >&2; exit 7"}, 7, "oh\n"},
		{"signal", supervisorConfig{}, []string{"sh", "-c", "kill -9 $$"}, 137, ""},
		{"no such program", supervisorConfig{}, []string{"/no/such/program"}, 127, "launchtest: fork/exec /no/such/program: no such file or directory\n"},
		{"limit", supervisorConfig{Limit: time.Millisecond}, []string{"sleep", "600"}, 124, "launchtest: sleep has not ended within 1ms: killed, with all that it started\n"}, // expires
		{"the command does not get the configuration", supervisorConfig{}, []string{"sh", "-c", "echo $" + supervisorVariable}, 0, "\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			k := newCommand(t.Context(), t, c.how, c.command...)
			output, err := k.CombinedOutput()
			require.Equal(t, c.status == 0, err == nil, "%v", err)
			require.Equal(t, c.status, k.ProcessState.ExitCode())
			require.Equal(t, c.says, string(output))
		})
	}
}

// litter is a script that leaves processes in groups and sessions of their own, started by children that end. The
// processes ignore all signals that can be ignored. Each prints its number.
const litter = `
cat >leave.sh <<'END'
trap '' TERM INT HUP
echo pid=$$
sleep 600
END
setsid sh leave.sh &
(setsid sh leave.sh & ) &
sh -c 'sh -c "sh leave.sh & exec setsid sh leave.sh" &'
sh leave.sh &
`

// littering is a command that has started litter.
type littering struct {
	*supervisedCommand
	input  io.Closer
	cancel context.CancelFunc
	pids   []int
}

// litterWith starts litter, with commands before and after it, and returns when all its processes have started.
func litterWith(t *testing.T, before, after string) *littering {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	l := &littering{supervisedCommand: newCommand(ctx, t, supervisorConfig{Limit: Limit}, "sh", "-c", before+litter+after), cancel: cancel}
	l.Dir = t.TempDir()
	output, err := l.StdoutPipe()
	require.NoError(t, err)
	l.input, err = l.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, l.Start())
	for lines := bufio.NewScanner(output); len(l.pids) < 5; {
		require.True(t, lines.Scan())
		var pid int
		_, err := fmt.Sscanf(lines.Text(), "pid=%d", &pid)
		require.NoError(t, err)
		l.pids = append(l.pids, pid)
	}
	return l
}

// However a command ends, all processes that it has started end. A run tries one end of each kind, in turns.
func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	for i, c := range []struct {
		name, before, after string
		end                 func(*littering)
		status              int
	}{
		{"success", "", "read line; exit 0", func(l *littering) { _ = l.input.Close() }, 0},
		{"failure", "", "read line; exit 5", func(l *littering) { _ = l.input.Close() }, 5},
		{"cancel", "", "wait", func(l *littering) { _ = l.Cancel() }, statusStopped},
		{"context", "", "wait", func(l *littering) { l.cancel() }, statusStopped},
		{"test", "", "wait", func(l *littering) { l.finish() }, statusStopped},
		{"signal", "trap 'exit 6' TERM", "wait", func(l *littering) { _ = l.Process.Signal(syscall.SIGTERM) }, 6},
	} {
		// Two of the cases end by themselves, and three are stopped.
		if i < 2 && !testsize.Turn(i, 2) || i >= 2 && i < 5 && !testsize.Turn(i, 3) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := litterWith(t, c.before, c.after)
			defer l.cancel()
			c.end(l)
			_ = l.Wait()
			require.Equal(t, c.status, l.ProcessState.ExitCode())
			for _, pid := range l.pids {
				require.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH)
			}
		})
	}
}

// The environment has no variables of a launcher that has started the test itself.
func TestForeignVariables(t *testing.T) {
	for _, name := range []string{"PMI_FD", "SLURM_JOB_ID", "MPI_LOCALRANKID", "HYDI_CONTROL_FD"} {
		t.Setenv(name, "1")
	}
	t.Setenv("RMA_DEVICE", "x")
	text := strings.Join(environment(), "\n")
	for _, name := range []string{"PMI_", "SLURM_", "MPI_LOCAL", "HYDI_"} {
		require.NotContains(t, text, name)
	}
	require.Contains(t, text, "RMA_DEVICE=x")
}

// A command ends when a command beside it ends, and its directory is removed after all of them.
func TestBeside(t *testing.T) {
	t.Parallel()
	dir, err := directory()
	require.NoError(t, err)
	for _, failing := range []int{-1, 0, 1} {
		o := supervisorConfig{Remove: dir, Beside: [][]string{{"sleep", "600"}, {"sleep", "600"}}}
		first := []string{"sleep", "600"}
		if failing < 0 {
			first = []string{"sh", "-c", "exit 9"}
		} else {
			o.Beside[failing] = []string{"sh", "-c", "exit 9"}
		}
		k := newCommand(t.Context(), t, o, first...)
		require.Error(t, k.Run())
		require.Equal(t, 9, k.ProcessState.ExitCode())
		require.NoDirExists(t, dir)
	}
}

// The error for a Slurm that does not start has the output of its daemons.
func TestSlurmDoesNotStart(t *testing.T) {
	t.Parallel()
	script := filepath.Join(Directory(t), "daemon")
	// Otherwise a process that another test starts meanwhile could have the file open for writing. Then the file could
	// not be executed.
	syscall.ForkLock.RLock()
	err := os.WriteFile(script, []byte("#!/bin/sh\necho refused; exit 4\n"), 0o755)
	syscall.ForkLock.RUnlock()
	require.NoError(t, err)
	c := &Cluster{t: t, sinfo: "false", nodes: 2, log: &log{}}
	err = c.start(script, "sleep")
	require.ErrorContains(t, err, "launchtest: a daemon has ended: exit status ")
	require.NoDirExists(t, c.dir)
	err = c.start("/no/such/daemon", "sleep")
	require.ErrorContains(t, err, "fork/exec /no/such/daemon")
	require.NoDirExists(t, c.dir)
}
