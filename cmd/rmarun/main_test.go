package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/internal/launchtest"
	"github.com/onesided/rma/internal/testsize"
)

// These variables make the test binary rmarun, or the program that its ranks run.
const (
	rmarunVariable = "RMARUN_TEST_MAIN"
	roleVariable   = "RMARUN_TEST_ROLE"
	// patienceVariable is the time that rmarun waits for processes and output that ranks leave behind.
	patienceVariable = "RMARUN_TEST_PATIENCE"
	// reportVariable is the time that ranks have to report why they fail.
	reportVariable = "RMARUN_TEST_TELL"
)

// forever is a time that no test waits for. short is a time that a test does wait for.
const (
	forever = "1h"
	short   = "10ms"
)

func TestMain(m *testing.M) {
	switch {
	case os.Getenv("PMI_RANK") != "" && os.Getenv(roleVariable) != "":
		play(os.Getenv(roleVariable), os.Getenv("PMI_RANK"))
	case filepath.Base(os.Args[0]) == "go":
		play(os.Getenv(roleVariable), "")
	case os.Getenv(rmarunVariable) != "":
		patience, report := duration(patienceVariable), duration(reportVariable)
		os.Exit(command(func(o *options) { o.leaveTime, o.outputTime, o.reportTime = patience, patience, report }))
	default:
		// A signal that is caught here is not ignored in processes that the tests start, even if this process was
		// started with the signal ignored.
		for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGINT} {
			if signal.Ignored(s) {
				signal.Notify(make(chan os.Signal, 1), s)
			}
		}
		os.Exit(m.Run())
	}
}

func duration(variable string) time.Duration {
	d, err := time.ParseDuration(os.Getenv(variable))
	if err != nil {
		panic(err)
	}
	return d
}

// rmarun returns the command with a role for its ranks. Unless arguments and environment say otherwise, it waits for
// ranks without a limit.
func rmarun(t *testing.T, role string, arguments ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	for i := range arguments {
		if arguments[i] == "SELF" {
			arguments[i] = self
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), await.Limit)
	t.Cleanup(cancel)
	c := exec.CommandContext(ctx, self, append([]string{"-grace", forever}, arguments...)...)
	// Under the race detector a process sleeps a second before it ends.
	c.Env = append(os.Environ(), rmarunVariable+"=1", roleVariable+"="+role, patienceVariable+"="+forever, reportVariable+"="+short, "GORACE=atexit_sleep_ms=0")
	return c
}

func status(t *testing.T, err error) int {
	t.Helper()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	if exit != nil {
		return exit.ExitCode()
	}
	return 0
}

// runJob runs a job and returns its output and its exit status.
func runJob(t *testing.T, role string, arguments ...string) (stdout, stderr string, exit int) {
	t.Helper()
	return runCommand(t, rmarun(t, role, arguments...))
}

func runCommand(t *testing.T, c *exec.Cmd) (stdout, stderr string, exit int) {
	t.Helper()
	var out, errors bytes.Buffer
	c.Stdout, c.Stderr = &out, &errors
	exit = status(t, c.Run())
	return out.String(), errors.String(), exit
}

func TestStatus(t *testing.T) {
	for _, test := range []struct {
		role, flags string
		want        int
		says        []string
	}{
		{"exit 0", "-n 2", 0, nil},
		{"exit 3", "-n 2", 3, []string{"rank 1 failed: exit status 3"}},
		{"signal 9", "-n 2", 128 + 9, []string{"rank 1 failed: signal: killed"}},
		{"signal 1", "-n 2", 128 + 1, []string{"rank 1 failed: signal: hangup"}},
		{"stubborn", "-n 3 -grace 100ms", 4, []string{"rank 1 failed: exit status 4", "2 further ranks were ended"}},
	} {
		t.Run(test.role, func(t *testing.T) {
			arguments := append(strings.Fields(test.flags), "SELF")
			_, stderr, exit := runJob(t, test.role, arguments...)
			require.Equal(t, test.want, exit, "%s", stderr)
			for _, says := range test.says {
				require.Contains(t, stderr, says)
			}
		})
	}
}

func TestLines(t *testing.T) {
	stdout, stderr, exit := runJob(t, "lines", "-n", "3", "-label", "SELF")
	require.Zero(t, exit)
	next := map[string]int{}
	for line := range strings.Lines(stdout) {
		label, text, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "] ")
		require.True(t, ok, "%q", line)
		rank := strings.TrimPrefix(label, "[")
		want := fmt.Sprintf("line %d of rank %s: %s", next[rank], rank, strings.Repeat(rank, 200))
		if next[rank] == 100 {
			want = "last of rank " + rank
		}
		require.Equal(t, want, text)
		next[rank]++
	}
	require.Equal(t, map[string]int{"0": 101, "1": 101, "2": 101}, next)
	require.Equal(t, 300, strings.Count(stderr, "\n"))
	require.NotContains(t, stdout, "error")
}

// TestFullDisk makes ranks print output that cannot be written. The ranks succeed, and the job fails.
func TestFullDisk(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skipf("skipped: there is no device that is always full: %v", err)
	}
	defer full.Close()
	for _, test := range []struct {
		name, role string
		want       int
	}{
		{"the ranks succeed", "lines", 1},
		{"a rank fails", "exit 3", 3},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := rmarun(t, test.role, "-n", "3", "SELF")
			var stderr bytes.Buffer
			c.Stdout, c.Stderr = full, &stderr
			require.Equal(t, test.want, status(t, c.Run()))
			says := "rmarun: write /dev/stdout: no space left on device: what the ranks print there is lost from here on\n"
			require.Equal(t, 1, strings.Count(stderr.String(), says), "%s", &stderr)
		})
	}
	t.Run("standard error", func(t *testing.T) {
		c := rmarun(t, "lines", "-n", "3", "SELF")
		var stdout bytes.Buffer
		c.Stdout, c.Stderr = &stdout, full
		require.Equal(t, 1, status(t, c.Run()))
		require.Equal(t, 3, strings.Count(stdout.String(), "line 99 of rank "))
	})
}

func TestInput(t *testing.T) {
	c := rmarun(t, "input", "-n", "2", "SELF")
	c.Stdin = strings.NewReader("for rank 0")
	output, err := c.Output()
	require.NoError(t, err)
	require.Contains(t, string(output), `rank 0 read "for rank 0"`)
	require.Contains(t, string(output), `rank 1 read ""`)
}

func TestEnvironmentAndArguments(t *testing.T) {
	stdout, _, exit := runJob(t, "environment", "-n", "2", "-env", "FIRST=a=b", "-env", "SECOND=", "SELF")
	require.Zero(t, exit)
	require.Contains(t, stdout, "0 2 a=b \n")
	require.Contains(t, stdout, "1 2 a=b \n")
	stdout, _, exit = runJob(t, "arguments", "-n", "1", "SELF", "-n", "7", "--", "x y")
	require.Zero(t, exit)
	require.Equal(t, "-n|7|--|x y\n", stdout)
}

// The ranks share the processors, unless a variable sets the number for each.
func TestProcessors(t *testing.T) {
	processors := func(variable string, arguments ...string) string {
		c := rmarun(t, "processors", append(arguments, "SELF")...)
		c.Env = append(c.Env, variable)
		output, err := c.Output()
		require.NoError(t, err)
		return string(output)
	}
	mine, err := strconv.Atoi(strings.TrimSpace(processors("GOMAXPROCS=", "-n", "1")))
	require.NoError(t, err)
	require.True(t, mine >= 1 && mine <= runtime.NumCPU(), "%d of %d", mine, runtime.NumCPU())
	part := strconv.Itoa(max(1, mine/2)) + "\n"
	require.Equal(t, part+part, processors("GOMAXPROCS=", "-n", "2"))
	require.Equal(t, "1\n1\n1\n", processors("GOMAXPROCS=", "-n", "3", "-env", "GOMAXPROCS=1"))
	require.Equal(t, "3\n3\n", processors("GOMAXPROCS=3", "-n", "2"))
	require.Equal(t, "5\n", processors("GOMAXPROCS=3", "-n", "1", "-env", "GOMAXPROCS=5"))
}

// A rank has its input, output and error, its manager, and its deathPipe, besides the files that this process has
// inherited.
func TestFiles(t *testing.T) {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skipf("skipped: what files a process has can be seen where there is /proc/self/fd: %v", err)
	}
	given := map[string]bool{}
	for _, e := range entries {
		link, _ := os.Readlink("/proc/self/fd/" + e.Name())
		given[e.Name()+" "+link] = true
	}
	stdout, _, exit := runJob(t, "files", "-n", "1", "SELF")
	require.Zero(t, exit)
	var own []string
	for line := range strings.Lines(stdout) {
		if line = strings.TrimSpace(line); !given[line] {
			number, _, _ := strings.Cut(line, " ")
			own = append(own, number)
		}
	}
	require.Subset(t, []string{"0", "1", "2", "3", "4"}, own)
	require.Contains(t, own, "3")
}

// The output of ranks is passed on however long its reader takes, even if a rank has left a process that could write
// more.
func TestSlowReader(t *testing.T) {
	for _, role := range []string{"flood", "flood left"} {
		c := rmarun(t, role, "-n", "1", "SELF")
		c.Env = append(c.Env, patienceVariable+"=0s")
		j := liveCommand(t, c)
		j.until(t, "ready", 1)
		launchtest.ProcessOf(t, j.ranks(t)[0]).AwaitEnd(t)
		require.Zero(t, j.end(t))
		require.Equal(t, flood, strings.Count(j.output.String(), "."))
	}
}

// A second interrupt ends a job whose output is not read.
func TestNoReader(t *testing.T) {
	c := rmarun(t, "flood", "-n", "1", "SELF")
	c.Env = append(c.Env, patienceVariable+"="+short)
	j := liveCommand(t, c)
	j.until(t, "ready", 1)
	launchtest.ProcessOf(t, j.ranks(t)[0]).AwaitEnd(t)
	ended := make(chan error, 1)
	go func() { ended <- j.Wait() }()
	await.True(t, "the job to end", func() bool {
		_ = j.Process.Signal(os.Interrupt)
		return len(ended) > 0
	})
	// A later interrupt of the loop may have ended rmarun itself.
	require.Contains(t, []int{128 + 2, -1}, status(t, <-ended))
	require.NoError(t, j.from.Close())
}

// A stream that is finished ends after the bytes that were written before, and has no later ones.
func TestFinishedStream(t *testing.T) {
	from, to, err := os.Pipe()
	require.NoError(t, err)
	defer to.Close()
	s := &stream{File: from}
	defer s.Close()
	_, err = io.WriteString(to, "before")
	require.NoError(t, err)
	s.finish()
	b := make([]byte, 3)
	_, err = io.ReadFull(s, b)
	require.NoError(t, err)
	_, err = io.WriteString(to, "after")
	require.NoError(t, err)
	rest, err := io.ReadAll(s)
	require.NoError(t, err)
	require.Equal(t, "before", string(b)+string(rest))
}

// A whole chunk is passed on at once. The next bytes may be those of an answer that the rank waits for.
func TestWholeChunk(t *testing.T) {
	for _, text := range []string{strings.Repeat("x", chunkSize), strings.Repeat("x", chunkSize-5) + "\nxxxx"} {
		from, to, err := os.Pipe()
		require.NoError(t, err)
		read, write := io.Pipe()
		passed := make(chan struct{})
		go func() {
			(&output{to: write, lines: new(atomic.Uint64)}).pass(&stream{File: from}, "", new(tail))
			close(passed)
		}()
		for range 2 {
			_, err = io.WriteString(to, text)
			require.NoError(t, err)
			got := make([]byte, len(text))
			_, err = io.ReadFull(read, got)
			require.NoError(t, err)
			require.Equal(t, text, string(got))
		}
		require.NoError(t, to.Close())
		<-passed
		require.NoError(t, from.Close())
	}
}

// Rmarun does not end children that it had before it started any. A shell with children may become rmarun by exec.
func TestInheritedChild(t *testing.T) {
	c := rmarun(t, "exit 0", "-n", "2", "SELF")
	c.Args = append([]string{"sh", "-c", `(read line <&3; echo the child goes on) & exec "$0" "$@"`, c.Path}, c.Args[1:]...)
	c.Path, _ = exec.LookPath("sh")
	theirs, mine, err := os.Pipe()
	require.NoError(t, err)
	c.ExtraFiles = []*os.File{theirs}
	j := liveCommand(t, c)
	require.NoError(t, theirs.Close())
	require.Zero(t, status(t, j.Wait()))
	require.NoError(t, mine.Close())
	text, err := io.ReadAll(j.from)
	require.NoError(t, err)
	require.Contains(t, string(text), "the child goes on")
}

// A rank that cannot have the terminal ends the job with a failure, whatever the exit statuses of its ranks.
func TestStuck(t *testing.T) {
	terminated, before := &rank{terminated: true, status: 5 << 8}, &rank{status: 3 << 8}
	for want, failed := range map[int][]*rank{1: {terminated}, 3: {before, terminated}} {
		j := &job{outcome: outcome{needsTerminal: true, failed: failed}, blames: make([]atomic.Pointer[blame], 1)}
		require.Equal(t, want, j.status())
	}
	require.Equal(t, 1, (&job{outcome: outcome{needsTerminal: true}}).status())
}

func TestWrongUsage(t *testing.T) {
	empty, broken, library, text := t.TempDir(), t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "text")
	write := func(name, content string) { require.NoError(t, os.WriteFile(name, []byte(content), 0o600)) }
	write(filepath.Join(broken, "go.mod"), "module broken\n")
	write(filepath.Join(broken, "main.go"), "package main\n\nfunc main() { nonsense }\n")
	write(filepath.Join(library, "go.mod"), "module library\n")
	write(filepath.Join(library, "library.go"), "package library\n")
	write(text, "not a program")
	for _, test := range []struct {
		name      string
		arguments []string
		status    int
		says      []string
	}{
		{"no -n", []string{"SELF", "."}, 2, []string{"-n is required: how many ranks, 1 to 4096"}},
		{"no ranks", []string{"-n", "0", "SELF"}, 2, []string{"1 to 4096"}},
		{"fewer", []string{"-n", "-3", "SELF"}, 2, []string{"-3", "1 to 4096"}},
		{"too many", []string{"-n", "100000", "SELF"}, 2, []string{"100000", "1 to 4096"}},
		{"no number", []string{"-n", "four", "SELF"}, 2, []string{"four", "1 to 4096"}},
		{"no program", []string{"-n", "2"}, 2, []string{"no PROGRAM or PACKAGE"}},
		{"empty program", []string{"-n", "2", ""}, 2, []string{"no PROGRAM or PACKAGE"}},
		{"grace without unit", []string{"-n", "1", "-grace", "10", "SELF"}, 2, []string{`"10" for flag -grace: allowed are 0 and durations with their unit, such as 500ms or 10s` + "\n"}},
		{"negative grace", []string{"-n", "1", "-grace", "-1s", "SELF"}, 2, []string{`"-1s" for flag -grace: allowed are 0 and`}},
		{"neither true nor false", []string{"-n", "1", "-label=on", "SELF"}, 2, []string{`"on" for -label: allowed are true and false` + "\n"}},
		{"a rank's own variable", []string{"-n", "2", "-env", "PMI_SIZE=3", "SELF"}, 2, []string{`"PMI_SIZE=3" for flag -env: only rmarun says which rank`}},
		{"unknown flag", []string{"-x", "SELF"}, 2, []string{"-x"}},
		{"no variable", []string{"-n", "1", "-env", "NAME", "SELF"}, 2, []string{"K=V"}},
		{"missing program", []string{"-n", "1", "/nowhere/at/all"}, 1, []string{"/nowhere/at/all"}},
		{"missing name", []string{"-n", "1", "no-such-program-or-package"}, 1, []string{"no-such-program-or-package", "no such program"}},
		{"not executable", []string{"-n", "1", text}, 1, []string{text}},
		{"empty directory", []string{"-n", "1", empty}, 1, []string{empty}},
		{"no go command", []string{"-n", "1", empty}, 1, []string{"building " + empty, "executable file not found in $PATH\n"}},
		{"not a command", []string{"-n", "1", library}, 1, []string{library, "is not a command: its package is not main"}},
		{"does not compile", []string{"-n", "1", broken}, 1, []string{"building " + broken, "nonsense"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := rmarun(t, "", test.arguments...)
			if test.name == "no go command" {
				c.Env = append(c.Env, "PATH=")
			}
			stdout, stderr, exit := runCommand(t, c)
			require.Equal(t, test.status, exit, "%s", stderr)
			require.Empty(t, stdout)
			require.NotContains(t, stderr, "\n\n")
			require.True(t, strings.HasSuffix(stderr, "\n"))
			require.NotContains(t, stderr, " failed: ", "nothing is run")
			for _, says := range test.says {
				require.Contains(t, stderr, says)
			}
		})
	}
}

func TestHelp(t *testing.T) {
	stdout, stderr, exit := runJob(t, "", "-h")
	require.Zero(t, exit)
	for _, says := range []string{"usage: rmarun -n N", "-label", "-env", "-grace duration", "(default 3s)", "SIGTERM and SIGQUIT do not", "exit status", "examples:"} {
		require.Contains(t, stdout+stderr, says)
	}
}

// TestPackage builds and runs a package of this module under one of two names, which take turns.
func TestPackage(t *testing.T) {
	t.Parallel()
	const print = "./testdata/print"
	for i, c := range []struct{ name, from string }{{print, "."}, {".", print}} {
		if !testsize.Turn(i, 2) {
			continue
		}
		run := rmarun(t, "", "-n", "2", "-label", c.name, "-top", "1")
		run.Dir = c.from
		output, err := run.Output()
		require.NoError(t, err, "%s in %s", c.name, c.from)
		lines := strings.Split(strings.TrimSpace(string(output)), "\n")
		slices.Sort(lines)
		require.Equal(t, []string{"[0] rank 0 -top 1", "[1] rank 1 -top 1"}, lines)
	}
}
