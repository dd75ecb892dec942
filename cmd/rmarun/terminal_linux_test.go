package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/internal/launchtest"
)

// shellVariable makes the test binary a shell, which runs its arguments as a job of its terminal.
const shellVariable = "RMARUN_TEST_SHELL"

func init() {
	if where := os.Getenv(shellVariable); where != "" {
		shell(where)
		os.Exit(0)
	}
}

const (
	background = "background"
	foreground = "foreground"
	// nowhere is a background from which no shell can bring the job, because the job is in the shell's own group.
	nowhere = "nowhere"
)

// shell runs a job in the background or foreground of its controlling terminal, descriptor 3, or nowhere. It reports
// how the job stops and ends. It brings a stopped job to the foreground when a line arrives on standard input. After
// the job it prints the typed text that no process has read.
func shell(where string) {
	const terminal = 3
	signal.Ignore(syscall.SIGTTOU)
	_ = os.Unsetenv(shellVariable)
	mine := unix.Getpgrp()
	c := exec.Command(os.Args[1], os.Args[2:]...)
	c.Stdin, c.Stdout, c.Stderr = os.NewFile(terminal, "terminal"), os.Stdout, os.Stderr
	switch where {
	case background:
		c.SysProcAttr = groupOfItsOwn()
	case foreground:
		c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Foreground: true, Ctty: terminal}
	case nowhere:
		other := exec.Command("sleep", "600")
		other.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Foreground: true, Ctty: terminal}
		if err := other.Start(); err != nil {
			fmt.Println(err)
			os.Exit(125)
		}
		defer func() { _ = other.Process.Kill() }()
	}
	if err := c.Start(); err != nil {
		fmt.Println(err)
		os.Exit(125)
	}
	fmt.Printf("job %d;\n", c.Process.Pid)
	commands := bufio.NewReader(os.Stdin)
	for {
		var s syscall.WaitStatus
		_, _ = syscall.Wait4(c.Process.Pid, &s, syscall.WUNTRACED, nil)
		_ = unix.IoctlSetPointerInt(terminal, unix.TIOCSPGRP, mine)
		if !s.Stopped() {
			_ = syscall.SetNonblock(terminal, true)
			text := make([]byte, 100)
			n, _ := syscall.Read(terminal, text)
			fmt.Printf("ended %d, left %q\n", s.ExitStatus(), text[:max(n, 0)])
			return
		}
		fmt.Println("stopped by", s.StopSignal())
		_, _ = commands.ReadString('\n')
		_ = unix.IoctlSetPointerInt(terminal, unix.TIOCSPGRP, c.Process.Pid)
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGCONT)
	}
}

// A console is a job of a shell on a terminal.
type console struct {
	*liveJob
	// keyboard is the side of the terminal for typing. commands is the shell's standard input.
	keyboard *os.File
	commands io.Writer
	// job is the process group of the job.
	job int
}

// newConsole starts a job after some text was typed.
func newConsole(t *testing.T, where, role string, ranks int, typed string) *console {
	t.Helper()
	return newConsoleOf(t, where, typed, rmarun(t, role, "-n", strconv.Itoa(ranks), "SELF"))
}

// newConsoleOf starts rmarun. If there is a program with arguments, it starts that program, with the command line of
// rmarun as further arguments.
func newConsoleOf(t *testing.T, where, typed string, c *exec.Cmd, program ...string) *console {
	t.Helper()
	heedStop(t)
	keyboard, screen := newTerminal(t)
	defer screen.Close()
	n := &console{keyboard: keyboard}
	n.enter(t, typed)
	await.True(t, "what was typed to arrive", func() bool {
		arrived, err := unix.IoctlGetInt(int(screen.Fd()), unix.TIOCINQ)
		return err == nil && arrived == len(typed)
	})
	c.Args = slices.Concat([]string{c.Path}, program, c.Args)
	c.Env = append(c.Env, shellVariable+"="+where)
	c.ExtraFiles = []*os.File{screen}
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 3}
	commands, err := c.StdinPipe()
	require.NoError(t, err)
	n.liveJob, n.commands = liveCommand(t, c), commands
	n.until(t, ";", 1)
	// The job may have written before its shell.
	_, said, _ := strings.Cut(n.output.String(), "job ")
	_, err = fmt.Sscanf(said, "%d;", &n.job)
	require.NoError(t, err)
	return n
}

// newTerminal returns both sides of a pseudo-terminal.
func newTerminal(t *testing.T) (keyboard, screen *os.File) {
	t.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("skipped: there are no pseudo-terminals: %v", err)
	}
	t.Cleanup(func() { _ = keyboard.Close() })
	require.NoError(t, unix.IoctlSetPointerInt(int(keyboard.Fd()), unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(int(keyboard.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	screen, err = os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	return keyboard, screen
}

// heedStop makes processes that a test starts stop by SIGTSTP, even if this process was started with SIGTSTP ignored.
func heedStop(t *testing.T) {
	t.Helper()
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGTSTP)
	t.Cleanup(func() { signal.Stop(caught) })
}

func (n *console) enter(t *testing.T, text string) {
	t.Helper()
	_, err := n.keyboard.WriteString(text)
	require.NoError(t, err)
}

// lent waits until another group than the job's and the shell's has the foreground, and returns the process of rank 0.
func (n *console) lent(t *testing.T) (rank int) {
	t.Helper()
	await.True(t, "rank 0 to have the terminal", func() bool {
		rank = n.foreground(t)
		return rank != n.job && rank != n.Process.Pid
	})
	return rank
}

func (n *console) bringToForeground(t *testing.T) {
	t.Helper()
	_, err := io.WriteString(n.commands, "\n")
	require.NoError(t, err)
}

// has waits until a process group has the foreground.
func (n *console) has(t *testing.T, group int) {
	t.Helper()
	await.True(t, "a process group to have the foreground", func() bool { return n.foreground(t) == group })
}

func (n *console) foreground(t *testing.T) int {
	t.Helper()
	group, err := unix.IoctlGetInt(int(n.keyboard.Fd()), unix.TIOCGPGRP)
	require.NoError(t, err)
	return group
}

// listenerOf returns the signal listener in the group of a rank.
func (n *console) listenerOf(t *testing.T, rank int) *launchtest.Process {
	t.Helper()
	names, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(t, err)
	for _, name := range names {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		require.NoError(t, err)
		line, _ := os.ReadFile(name)
		if group, _ := unix.Getpgid(pid); group == rank && string(line) == listenerName+"\x00" {
			return launchtest.ProcessOf(t, pid)
		}
	}
	require.Fail(t, "no signal listener")
	return nil
}

// finish ends the ranks, and requires that each text has occurred once.
func (n *console) finish(t *testing.T, says ...string) {
	t.Helper()
	require.NoError(t, syscall.Kill(n.job, syscall.SIGUSR1))
	require.Zero(t, n.end(t), n.output.String())
	for _, s := range says {
		require.Equal(t, 1, strings.Count(n.output.String(), s), "%q in %s", s, n.output.String())
	}
}

// A job whose ranks do not read the terminal runs in the background, and leaves typed text to the shell.
func TestBackground(t *testing.T) {
	for _, where := range []string{background, foreground} {
		n := newConsole(t, where, "await", 2, "for the shell\n")
		n.until(t, "ready", 2)
		n.finish(t, `ended 0, left "for the shell\n"`)
	}
}

// A rank that reads the terminal gets the line that it reads. The rest is left for the shell.
func TestForegroundReader(t *testing.T) {
	n := newConsole(t, foreground, "reader", 2, "one\ntwo\n")
	n.until(t, "ready", 2)
	n.until(t, `rank 0 read "one\n"`, 1)
	n.finish(t, `ended 0, left "two\n"`)
}

// When the reading rank ends, the job gets the terminal back, as a script that continues expects.
func TestTerminalReturned(t *testing.T) {
	n := newConsole(t, foreground, "reader", 2, "")
	n.until(t, "ready", 2)
	n.lent(t)
	n.enter(t, "\x04")
	n.until(t, `rank 0 read ""`, 1)
	n.has(t, n.job)
	n.finish(t, "ended 0")
}

// A signal that was not typed concerns only the group to which it was sent. A script that has run rmarun continues.
func TestUntypedSignals(t *testing.T) {
	begin := func(t *testing.T) (n *console, reader, other int) {
		t.Helper()
		n = newConsoleOf(t, foreground, "", rmarun(t, "reader", "-n", "2", "SELF"), "sh", "-c", `"$0" "$@"; echo "the script goes on after $?"`)
		n.until(t, "ready", 2)
		reader = n.lent(t)
		pids := n.ranks(t)
		return n, reader, pids[0] + pids[1] - reader
	}
	t.Run("of rmarun", func(t *testing.T) {
		n, _, other := begin(t)
		require.NoError(t, syscall.Kill(other, syscall.SIGUSR2))
		require.Zero(t, n.end(t))
		require.Contains(t, n.output.String(), "the script goes on after 3\n")
	})
	t.Run("that ranks get from rmarun", func(t *testing.T) {
		n := newConsole(t, foreground, "reader", 2, "")
		n.until(t, "ready", 2)
		listener := n.listenerOf(t, n.lent(t))
		require.NoError(t, syscall.Kill(n.job, syscall.SIGINT))
		listener.AwaitEnd(t)
		n.until(t, "heard interrupt", 2)
		n.finish(t, "rank 0 heard interrupt", "rank 1 heard interrupt", "ended 130")
	})
	t.Run("of the reader", func(t *testing.T) {
		n, reader, _ := begin(t)
		require.NoError(t, syscall.Kill(-reader, syscall.SIGTERM))
		require.Zero(t, n.end(t))
		require.Contains(t, n.output.String(), "the script goes on after 143\n")
	})
	t.Run("of the kernel", func(t *testing.T) {
		n := newConsole(t, foreground, "reader", 2, "")
		n.until(t, "ready", 2)
		n.listenerOf(t, n.lent(t)).Kill()
		n.has(t, n.job)
		n.enter(t, "\x03")
		n.until(t, "heard interrupt", 2)
		n.finish(t, "rank 0 heard interrupt", "rank 1 heard interrupt", "ended 130")
	})
}

// If the shell has taken the terminal meanwhile, the shell keeps it.
func TestTerminalTaken(t *testing.T) {
	n := newConsole(t, foreground, "reader", 2, "")
	n.until(t, "ready", 2)
	listener := n.listenerOf(t, n.lent(t))
	require.NoError(t, syscall.Kill(n.job, syscall.SIGSTOP))
	n.until(t, "stopped by stopped (signal)\n", 1)
	require.NoError(t, syscall.Kill(n.job, syscall.SIGCONT))
	listener.AwaitEnd(t)
	require.NoError(t, syscall.Kill(n.job, syscall.SIGUSR1))
	// The signal may let rank 0 read again before it ends, which stops the job.
	await.True(t, "the job to end or stop", func() bool { return strings.IndexByte("ZT", state(t, n.job)) >= 0 })
	require.Equal(t, n.Process.Pid, n.foreground(t))
	n.bringToForeground(t)
	require.Zero(t, n.end(t))
	require.Contains(t, n.output.String(), "ended 0")
}

// If no shell can bring the terminal to a rank that needs it, the job ends, even with -keep-going.
func TestNoTerminal(t *testing.T) {
	c := rmarun(t, "reader", "-keep-going", "-grace", short, "-n", "2", "SELF")
	// No rank has failed, so rmarun does not wait for ranks to report a reason.
	c.Env = append(c.Env, reportVariable+"="+forever)
	n := newConsoleOf(t, nowhere, "", c)
	require.Zero(t, n.end(t))
	require.Equal(t, 1, strings.Count(n.output.String(), "rank 0 wants the terminal, and no shell can bring"))
	require.Contains(t, n.output.String(), "ended 1,")
}

// A rank gets the terminal even if the file of rmarun was removed meanwhile.
func TestReplacedProgram(t *testing.T) {
	c := rmarun(t, "reader", "-n", "2", "SELF")
	program, err := os.ReadFile(c.Path)
	require.NoError(t, err)
	c.Path = filepath.Join(t.TempDir(), "rmarun")
	require.NoError(t, os.WriteFile(c.Path, program, 0o700))
	c.Args[0] = c.Path
	n := newConsoleOf(t, background, "", c)
	n.until(t, "stopped by stopped (tty input)\n", 1)
	require.NoError(t, os.Remove(c.Path))
	n.bringToForeground(t)
	n.lent(t)
	n.until(t, "ready", 2)
	n.finish(t, "ended 0")
}

// A job with a rank that reads the terminal from the background stops until the shell brings the job to the foreground.
func TestBackgroundReader(t *testing.T) {
	n := newConsole(t, background, "reader", 2, "")
	n.until(t, "stopped by stopped (tty input)\n", 1)
	n.bringToForeground(t)
	n.lent(t)
	n.enter(t, "one\n")
	n.until(t, "ready", 2)
	n.until(t, `rank 0 read "one\n"`, 1)
	n.finish(t, `ended 0, left ""`)
}

// Typed signals reach every rank once, and rmarun, while a rank reads.
func TestTypedSignals(t *testing.T) {
	t.Run("interrupt", func(t *testing.T) {
		n := newConsole(t, foreground, "reader", 2, "")
		n.until(t, "ready", 2)
		n.lent(t)
		n.enter(t, "\x03")
		n.until(t, "heard interrupt", 2)
		n.finish(t, "rank 0 heard interrupt", "rank 1 heard interrupt", "ended 130")
	})
	t.Run("stop", func(t *testing.T) {
		n := newConsole(t, foreground, "reader", 2, "")
		n.until(t, "ready", 2)
		n.lent(t)
		n.enter(t, "\x1a")
		n.until(t, "stopped by stopped\n", 1)
		for _, pid := range n.ranks(t) {
			await.True(t, "a rank to stop", func() bool { return state(t, pid) == 'T' })
		}
		n.bringToForeground(t)
		n.lent(t)
		n.enter(t, "one\n")
		n.until(t, `rank 0 read "one\n"`, 1)
		n.finish(t, "ended 0")
	})
}

// Rmarun stops with its ranks, and continues with them.
func TestSuspend(t *testing.T) {
	heedStop(t)
	c := rmarun(t, "await", "-n", "2", "sh", "-c", `"$0"; exit $?`, "SELF")
	c.SysProcAttr = groupOfItsOwn()
	j := liveCommand(t, c)
	j.until(t, "ready", 2)
	all := append(j.ranks(t), j.Process.Pid)
	for _, pid := range j.ranks(t) {
		all = append(all, parent(pid))
	}
	require.NoError(t, j.Process.Signal(syscall.SIGTSTP))
	for _, pid := range all {
		await.True(t, "a process to stop", func() bool { return state(t, pid) == 'T' })
	}
	require.NoError(t, j.Process.Signal(syscall.SIGCONT))
	for _, pid := range all {
		await.True(t, "a process to go on", func() bool { return state(t, pid) != 'T' })
	}
	require.NoError(t, j.Process.Signal(syscall.SIGTERM))
	require.Equal(t, 128+15, j.end(t))
	require.Equal(t, 2, strings.Count(j.output.String(), "heard terminated"))
}

// state returns the state of a process, as ps shows it.
func state(t *testing.T, pid int) byte {
	t.Helper()
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	require.NoError(t, err)
	return stat[bytes.LastIndexByte(stat, ')')+2]
}

// Rmarun reaps the children that a rank leaves behind. So none is left for process 1, or as a zombie if rmarun is
// process 1.
func TestReap(t *testing.T) {
	j := live(t, "orphan", 1)
	j.until(t, "ready", 1)
	orphan := j.ranks(t)[0]
	await.True(t, "the orphan to be reaped", func() bool {
		_, err := os.Stat("/proc/" + strconv.Itoa(orphan))
		return os.IsNotExist(err)
	})
	require.NoError(t, j.Process.Signal(syscall.SIGTERM))
	j.end(t)
}

// If the ranks' output appears on rmarun's terminal at once, each rank knows that from its own standard error. It does
// not with labels, because rmarun then waits for whole lines, nor if the output goes to a file. On one terminal both
// streams of a rank keep their order.
func TestSeen(t *testing.T) {
	const progress = "seen 1\r\nresult 1\r\nseen 2\r\nresult 2\r\n"
	for _, test := range []struct {
		name                             string
		arguments                        []string
		redirectOut, redirectErr, nested bool
		want                             string
	}{
		{name: "both", want: progress},
		{name: "the output is a file", redirectOut: true, want: "seen 1\r\nseen 2\r\n"},
		{name: "the error is a file", redirectErr: true, want: "result 1\r\nresult 2\r\n"},
		{name: "the rank's is a file", arguments: []string{"sh", "-c", `exec "$0" 2>/dev/null`}, want: "result 1\r\nresult 2\r\n"},
		{name: "labels", arguments: []string{"-label"}, want: "[0] result 1\r\n[0] result 2\r\n"},
		{name: "under another rmarun", nested: true, want: progress},
	} {
		t.Run(test.name, func(t *testing.T) {
			keyboard, screen := newTerminal(t)
			c := rmarun(t, "seen", slices.Concat([]string{"-n", "1"}, test.arguments, []string{"SELF"})...)
			if test.nested {
				// The inner rmarun must not play the role of a rank, so PMI_RANK is removed.
				c.Args = slices.Concat(c.Args[:len(c.Args)-1], []string{"env", "-u", "PMI_RANK"}, c.Args)
			}
			c.Stdout, c.Stderr = screen, screen
			if test.redirectOut {
				c.Stdout = nil
			}
			if test.redirectErr {
				c.Stderr = nil
			}
			require.NoError(t, c.Start())
			require.NoError(t, screen.Close())
			// The end of a terminal is an error.
			text, _ := io.ReadAll(keyboard)
			require.NoError(t, c.Wait())
			require.Equal(t, test.want, string(text))
		})
	}
}
