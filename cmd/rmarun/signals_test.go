package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/onesided/rma/internal/launchtest"
	"github.com/onesided/rma/internal/testsize"
)

// A liveJob is rmarun while its ranks run.
type liveJob struct {
	*exec.Cmd
	from   *os.File
	output bytes.Buffer
	// pids are the processes of the ranks.
	pids []int
}

// live starts a job.
func live(t *testing.T, role string, ranks int, flags ...string) *liveJob {
	t.Helper()
	return liveCommand(t, rmarun(t, role, append(flags, "-n", strconv.Itoa(ranks), "SELF")...))
}

func liveCommand(t *testing.T, c *exec.Cmd) *liveJob {
	t.Helper()
	j := &liveJob{Cmd: c}
	from, to, err := os.Pipe()
	require.NoError(t, err)
	j.from, j.Stdout, j.Stderr = from, to, to
	require.NoError(t, j.Start())
	require.NoError(t, to.Close())
	return j
}

// started starts a job and returns when its ranks have reported that they are ready.
func started(t *testing.T, ranks int, flags ...string) *liveJob {
	t.Helper()
	j := live(t, "await", ranks, flags...)
	j.until(t, "ready", ranks)
	j.pids = j.ranks(t)
	return j
}

// ranks returns the processes that have reported that they are ready.
func (j *liveJob) ranks(t *testing.T) (pids []int) {
	t.Helper()
	for line := range strings.Lines(j.output.String()) {
		if number, ok := strings.CutPrefix(line, "ready "); ok {
			pid, err := strconv.Atoi(strings.TrimSpace(number))
			require.NoError(t, err)
			pids = append(pids, pid)
		}
	}
	return pids
}

// until reads the output of the ranks until a text has occurred count times.
func (j *liveJob) until(t *testing.T, text string, count int) {
	t.Helper()
	buffer := make([]byte, 4096)
	for strings.Count(j.output.String(), text) < count {
		n, err := j.from.Read(buffer)
		require.NoError(t, err, "%s", j.output.String())
		j.output.Write(buffer[:n])
	}
}

// end reads the rest of the output and returns the exit status.
func (j *liveJob) end(t *testing.T) int {
	t.Helper()
	_, err := io.Copy(&j.output, j.from)
	require.NoError(t, err)
	require.NoError(t, j.from.Close())
	return status(t, j.Wait())
}

// A job that a signal has ended has the status of that signal, whatever the statuses of its ranks.
func TestSignals(t *testing.T) {
	for s, want := range map[syscall.Signal]int{syscall.SIGUSR1: 0, syscall.SIGTERM: 128 + 15} {
		t.Run(s.String(), func(t *testing.T) {
			j := started(t, 3)
			require.NoError(t, j.Process.Signal(s))
			require.Equal(t, want, j.end(t))
			require.Equal(t, 3, strings.Count(j.output.String(), "heard "+s.String()))
		})
	}
	t.Run("twice", func(t *testing.T) {
		j := started(t, 2)
		require.NoError(t, j.Process.Signal(os.Interrupt))
		j.until(t, "heard interrupt", 2)
		require.NoError(t, j.Process.Signal(os.Interrupt))
		require.Equal(t, 128+2, j.end(t))
	})
	t.Run("to one that is stopped", func(t *testing.T) {
		j := started(t, 2, "-grace", short)
		require.NoError(t, syscall.Kill(j.pids[1], syscall.SIGSTOP))
		require.NoError(t, j.Process.Signal(syscall.SIGTERM))
		require.Equal(t, 128+15, j.end(t))
	})
	for i, s := range ending {
		if !testsize.Turn(i, len(ending)) {
			continue
		}
		t.Run(s.String()+" to ranks that do not end", func(t *testing.T) {
			j := live(t, "deaf", 2, "-grace", short)
			j.until(t, "ready", 2)
			require.NoError(t, j.Process.Signal(s))
			require.Equal(t, 128+int(s.(syscall.Signal)), j.end(t))
		})
	}
	t.Run("to ranks behind a shell", func(t *testing.T) {
		j := liveCommand(t, rmarun(t, "await", "-n", "2", "sh", "-c", `"$0"; exit $?`, "SELF"))
		j.until(t, "ready", 2)
		require.NoError(t, j.Process.Signal(syscall.SIGTERM))
		require.Equal(t, 128+15, j.end(t))
		require.Equal(t, 2, strings.Count(j.output.String(), "heard terminated"))
	})
	t.Run("that is not for an end", func(t *testing.T) {
		j := started(t, 1)
		require.NoError(t, j.Process.Signal(syscall.SIGUSR2))
		require.Equal(t, 5, j.end(t))
		require.Contains(t, j.output.String(), "rmarun: rank 0 failed: exit status 5\n")
	})
}

// Rmarun and its ranks ignore a signal that was ignored when rmarun started.
func TestIgnoredSignal(t *testing.T) {
	c := rmarun(t, "await", "-n", "2", "SELF")
	c.Args = append([]string{"sh", "-c", `trap "" HUP; exec "$0" "$@"`, c.Path}, c.Args[1:]...)
	c.Path, _ = exec.LookPath("sh")
	j := liveCommand(t, c)
	j.until(t, "ready", 2)
	require.NoError(t, syscall.Kill(j.ranks(t)[0], syscall.SIGHUP))
	require.NoError(t, j.Process.Signal(syscall.SIGHUP))
	require.NoError(t, j.Process.Signal(syscall.SIGUSR1))
	require.Zero(t, j.end(t), j.output.String())
}

// A prompt is passed on before its line has an end.
func TestPrompt(t *testing.T) {
	j := live(t, "prompt", 2)
	j.until(t, "name? ", 2)
	require.NoError(t, j.Process.Signal(syscall.SIGTERM))
	require.Equal(t, 128+15, j.end(t))
	require.Equal(t, "name? name? ", j.output.String())
}

// Rmarun reports a rank that ends, or leaves the job, without closing its World. A rank that has failed is only
// reported as failed.
func TestUnclosed(t *testing.T) {
	for _, c := range []struct{ how, patience, says string }{
		{"0", forever, "rmarun: rank 1 has ended without closing its World\n"},
		{"not joined", forever, "rmarun: rank 1 has ended without joining the job: its Init failed\n"},
		{"goes on", short, "rmarun: rank 1 has left the job without closing its World, and goes on\n"},
	} {
		command := rmarun(t, "unclosed "+c.how, "-n", "2", "SELF")
		command.Env = append(command.Env, patienceVariable+"="+c.patience)
		j := liveCommand(t, command)
		j.until(t, c.says, 1)
		require.NoError(t, j.Process.Signal(syscall.SIGTERM))
		j.end(t)
		require.Equal(t, 1, strings.Count(j.output.String(), "rmarun: rank 1 has "), "%s", j.output.String())
	}
	for range testsize.N(2) {
		_, stderr, exit := runJob(t, "unclosed all", "-n", "2", "SELF")
		require.Zero(t, exit)
		for rank := range 2 {
			require.Contains(t, stderr, fmt.Sprintf("rmarun: rank %d has ended without closing its World\n", rank))
		}
	}
	for range testsize.N(1) {
		_, stderr, exit := runJob(t, "unclosed 3", "-n", "2", "SELF")
		require.Equal(t, 3, exit)
		require.Contains(t, stderr, "rmarun: rank 1 failed: exit status 3\n")
		require.NotContains(t, stderr, "closing its World")
	}
}

// Rmarun notices an abort although all ranks have ended.
func TestAbortAtTheEnd(t *testing.T) {
	for range testsize.N(4) {
		_, stderr, exit := runJob(t, "abandon 7", "-n", "1", "SELF")
		require.Equal(t, 7, exit, "%s", stderr)
	}
}

// A signal during the build ends rmarun, and the files of the build are removed.
func TestSignalWhileBuilding(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	bin, temporary := t.TempDir(), t.TempDir()
	require.NoError(t, os.Symlink(self, filepath.Join(bin, "go")))
	begun := filepath.Join(bin, "begun")
	require.NoError(t, syscall.Mkfifo(begun, 0o600))
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGHUP} {
		c := rmarun(t, "build "+begun, "-n", "1", ".")
		c.Env = append(c.Env, "PATH="+bin, "TMPDIR="+temporary)
		var stderr bytes.Buffer
		c.Stderr = &stderr
		require.NoError(t, c.Start())
		_, err = os.ReadFile(begun)
		require.NoError(t, err)
		require.NoError(t, c.Process.Signal(s))
		require.Equal(t, 128+int(s), status(t, c.Wait()))
		require.Equal(t, fmt.Sprintf("rmarun: building .: received %s\n", unix.SignalName(s)), stderr.String())
		left, err := os.ReadDir(temporary)
		require.NoError(t, err)
		require.Empty(t, left)
	}
}

// TestKilled kills rmarun itself, and its ranks end with it.
func TestKilled(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("skipped: only Linux has a signal for the death of a parent")
	}
	for _, program := range [][]string{{"SELF"}, {"sh", "-c", `"$0"; exit $?`, "SELF"}} {
		j := liveCommand(t, rmarun(t, "await", append([]string{"-n", "3"}, program...)...))
		j.until(t, "ready", 3)
		var ranks []*launchtest.Process
		for _, pid := range j.ranks(t) {
			ranks = append(ranks, launchtest.ProcessOf(t, pid))
		}
		require.NoError(t, j.Process.Kill())
		require.Equal(t, -1, j.end(t))
		for _, rank := range ranks {
			rank.AwaitEnd(t)
		}
	}
}

// TestLeftBehind makes each rank leave a process that has the rank's output.
func TestLeftBehind(t *testing.T) {
	dir := t.TempDir()
	c := rmarun(t, "leave "+dir, "-n", "2", "SELF")
	c.Env = append(c.Env, patienceVariable+"="+short)
	_, _, exit := runCommand(t, c)
	require.Zero(t, exit)
	for rank := range 2 {
		text, err := os.ReadFile(filepath.Join(dir, strconv.Itoa(rank)))
		require.NoError(t, err)
		pid, err := strconv.Atoi(string(text))
		require.NoError(t, err)
		launchtest.ProcessOf(t, pid).AwaitEnd(t)
	}
}

// A process that has left the group of its rank ends with the job, too.
func TestEscaped(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("skipped: only Linux has processes that adopt others")
	}
	j := live(t, "escape", 2)
	j.until(t, "ready", 2)
	var escaped []*launchtest.Process
	for _, pid := range j.ranks(t) {
		escaped = append(escaped, launchtest.ProcessOf(t, pid))
	}
	require.NoError(t, j.Process.Signal(syscall.SIGUSR1))
	require.Zero(t, j.end(t))
	for _, process := range escaped {
		process.AwaitEnd(t)
	}
}

// Processes that a rank leaves in its group have the grace of the job if the job is ending. Otherwise they have until
// the rank's output has ended.
func TestConclude(t *testing.T) {
	for name, test := range map[string]struct {
		grace <-chan time.Time
		over  bool
	}{"goes on": {nil, true}, "is to end": {make(chan time.Time), false}} {
		t.Run(name, func(t *testing.T) {
			left := exec.Command("sleep", "600")
			left.SysProcAttr = groupOfItsOwn()
			require.NoError(t, left.Start())
			r := &rank{pid: left.Process.Pid, done: true}
			j := &job{ranks: []*rank{r}, running: 1, grace: test.grace}
			j.conclude(r)
			require.False(t, r.over)
			r.silent = true
			j.conclude(r)
			require.Equal(t, test.over, r.over)
			j.kill()
			require.True(t, r.over)
			require.Zero(t, j.running)
			require.ErrorContains(t, left.Wait(), "killed")
		})
	}
}
