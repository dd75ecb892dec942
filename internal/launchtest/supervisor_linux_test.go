package launchtest_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/launchtest"
)

// until reads a command's output through the next line that begins with a word, and returns it.
func until(t *testing.T, lines *bufio.Reader, word string) (read string) {
	t.Helper()
	for {
		line, err := lines.ReadString('\n')
		read += line
		require.NoError(t, err, "waiting for %q: %s", word, read)
		if strings.HasPrefix(line, word) {
			return read
		}
	}
}

// Under Hydra a rank that ends before its first message leaves a job that hangs. Cancel ends all of its processes,
// including the proxy.
func TestHungHydra(t *testing.T) {
	t.Parallel()
	command := launchtest.Hydra(t, 2, []string{roleVariable + "=mute"}, launchtest.Self(t))
	pipe, err := command.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, command.Start())
	output := bufio.NewReader(pipe)
	read := until(t, output, "ending")
	for strings.Count(read, "pid=") < 2 {
		read += until(t, output, "pid=")
	}
	tree := launchtest.Descendants(command.Process.Pid)
	require.GreaterOrEqual(t, len(tree), 3, "mpiexec, its proxy and a rank")
	require.NoError(t, command.Cancel())
	require.Equal(t, launchtest.StatusStopped, exitStatus(t, command.Wait()))
	requireGone(t, append(tree, pids(t, 2, read)...))
}

// innerVariable is set in a process that runs a test once more. There the test does what the outer test observes.
const innerVariable = "LAUNCHTEST_INNER"

func inner() bool { return os.Getenv(innerVariable) != "" }

// process returns a command that runs a test once more, in a process of its own.
func process(t *testing.T, test string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	command := exec.CommandContext(t.Context(), self, "-test.run", test, "-test.v")
	command.Env = append(os.Environ(), innerVariable+"=1", "GORACE=atexit_sleep_ms=0")
	return command
}

// wait is a program whose ranks each start a child, print their number, and wait for the child.
var wait = []string{"sh", "-c", "sleep 600 & echo pid=$$; wait"}

// A killed test process cannot clean up. All processes that it has started end nevertheless: supervisors, daemons,
// launchers, ranks, and their children.
func TestProcessIsGone(t *testing.T) {
	t.Parallel()
	for name, job := range map[string]func(t *testing.T) *exec.Cmd{
		"slurm": func(t *testing.T) *exec.Cmd {
			return launchtest.Slurm(t, 2).Command(t.Context(), append([]string{"-N", "2", "-n", "2"}, wait...)...)
		},
		"hydra": func(t *testing.T) *exec.Cmd { return launchtest.Hydra(t, 2, nil, wait...) },
	} {
		t.Run(name, func(t *testing.T) {
			if inner() {
				command := job(t)
				command.Stdout = os.Stdout
				require.NoError(t, command.Run())
				return
			}
			t.Parallel()
			command := process(t, "^TestProcessIsGone$/^"+name+"$")
			pipe, err := command.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, command.Start())
			output := bufio.NewReader(pipe)
			read := until(t, output, "")
			for strings.Count(read, "pid=") < 2 {
				line := until(t, output, "")
				if _, reason, missing := strings.Cut(line, "skipped: "); missing {
					rest, err := io.ReadAll(output)
					require.NoError(t, errors.Join(err, command.Wait()))
					reason, _, _ = strings.Cut(reason+string(rest), "--- ")
					t.Skipf("skipped: %s", reason)
				}
				read += line
			}
			pids(t, 2, read)
			tree := launchtest.Descendants(command.Process.Pid)
			require.GreaterOrEqual(t, len(tree), 6, "a supervisor, a launcher, two shells and what they started")
			var processes []*launchtest.Process
			for _, pid := range tree {
				processes = append(processes, launchtest.ProcessOf(t, pid))
			}
			require.NoError(t, command.Process.Kill())
			_ = command.Wait()
			for _, p := range processes {
				p.AwaitEnd(t)
			}
		})
	}
}

// The programs that a process has built are removed when the process ends.
func TestProgramsAreRemoved(t *testing.T) {
	t.Parallel()
	if inner() {
		path := launchtest.Self(t)
		require.FileExists(t, path)
		fmt.Println("path=" + path)
		return
	}
	output, err := process(t, "^TestProgramsAreRemoved$").CombinedOutput()
	require.NoError(t, err, "%s", output)
	_, rest, ok := bytes.Cut(output, []byte("path="))
	require.True(t, ok, "%s", output)
	path, _, _ := strings.Cut(string(rest), "\n")
	require.NoFileExists(t, path)
}

func TestBuildOnce(t *testing.T) {
	t.Parallel()
	path := launchtest.Build(t, "./cmd/rmarun")
	require.Equal(t, path, launchtest.Build(t, "./cmd/rmarun"))
	require.NotEqual(t, path, launchtest.Self(t))
	for _, path := range []string{path, launchtest.Self(t)} {
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o755), info.Mode())
	}
}
