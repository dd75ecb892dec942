package nettest_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/internal/nettest"
)

// litter is a script that leaves processes on a host. No process waits for them, and they ignore all signals that can
// be ignored. Each prints "litter NUMBER SPACE".
const litter = `
trap '' TERM INT HUP
cat >leave.sh <<'END'
echo "litter $$ $(readlink /proc/self/ns/net)"
exec sleep 600
END
setsid sh leave.sh &
(setsid sh leave.sh &) &
exec sh leave.sh
`

// leave runs litter on a host. It returns the printed lines when all processes have started.
func leave(t *testing.T, n *nettest.Network, host int) (lines []string) {
	t.Helper()
	command := n.Command(host, "sh", "-c", litter)
	command.Dir = t.TempDir()
	output, err := command.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, command.Start())
	for scan := bufio.NewScanner(output); len(lines) < 3; lines = append(lines, scan.Text()) {
		require.True(t, scan.Scan())
	}
	return lines
}

// watched is a process and the namespace in which it was. Both are held open, so that no other gets their numbers.
type watched struct {
	file, held int
	space      string
}

func watch(t *testing.T, lines []string) (found []watched) {
	t.Helper()
	for _, line := range lines {
		var pid int
		var w watched
		_, err := fmt.Sscanf(line, "litter %d %s", &pid, &w.space)
		require.NoError(t, err, "%q", line)
		w.file, err = unix.PidfdOpen(pid, 0)
		require.NoError(t, err)
		w.held, err = unix.Open(fmt.Sprintf("/proc/%d/ns/net", pid), unix.O_RDONLY|unix.O_CLOEXEC, 0)
		require.NoError(t, err)
		found = append(found, w)
	}
	return found
}

// requireEnd waits until the processes have ended, and checks that no process is in their namespaces. It releases them.
func requireEnd(t *testing.T, all []watched) {
	t.Helper()
	for _, w := range all {
		for {
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(w.file), Events: unix.POLLIN}}, int(await.Limit.Milliseconds()))
			if errors.Is(err, unix.EINTR) {
				continue
			}
			require.NoError(t, err)
			require.Equal(t, 1, n, "a process is still there")
			break
		}
	}
	for _, w := range all {
		spaces, err := filepath.Glob("/proc/[0-9]*/ns/net")
		require.NoError(t, err)
		require.NotEmpty(t, spaces)
		for _, space := range spaces {
			in, _ := os.Readlink(space)
			require.NotEqual(t, w.space, in, "%s", space)
		}
	}
	for _, w := range all {
		require.NoError(t, unix.Close(w.held))
		require.NoError(t, unix.Close(w.file))
	}
}

// lifetime matches the remaining validity of an address, which decreases.
var lifetime = regexp.MustCompile(`(?m)\s+valid_lft .*$`)

// machine describes the networks of this machine outside of namespaces, and the namespaces that this process has open.
func machine(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, arguments := range [][]string{{"netns", "list"}, {"-o", "link"}, {"-o", "address"}, {"route"}} {
		output, err := exec.CommandContext(t.Context(), "ip", arguments...).Output()
		require.NoError(t, err)
		all.Write(lifetime.ReplaceAll(output, nil))
	}
	files, err := filepath.Glob("/proc/self/fd/*")
	require.NoError(t, err)
	for _, file := range files {
		if to, _ := os.Readlink(file); strings.HasPrefix(to, "net:") || strings.HasPrefix(to, "/proc/") {
			fmt.Fprintln(&all, to)
		}
	}
	threads, err := filepath.Glob("/proc/self/task/*/ns/net")
	require.NoError(t, err)
	spaces := make(map[string]bool)
	for _, thread := range threads {
		if in, err := os.Readlink(thread); err == nil {
			spaces[in] = true
		}
	}
	fmt.Fprintln(&all, spaces)
	return all.String()
}

// When a test has ended, nothing of its network is left.
func TestNothingIsLeft(t *testing.T) {
	nettest.New(t, 1).Cut(0)
	before := machine(t)
	var all []watched
	for range 2 {
		t.Run("network", func(t *testing.T) {
			n := nettest.New(t, 2)
			var left []string
			for host := range 2 {
				left = append(left, leave(t, n, host)...)
			}
			require.NoError(t, n.Do(1, func() error { return nil }))
			require.NotEqual(t, before, machine(t), "this process has the namespaces open")
			all = watch(t, left)
		})
		require.Len(t, all, 6)
		requireEnd(t, all)
		require.Equal(t, before, machine(t))
	}
}

// endVariable makes TestProcessIsGone, in a process of its own, a test that ends in the way of its value.
const endVariable = "NETTEST_END"

// litterAndEnd leaves litter, and ends in the given way.
func litterAndEnd(t *testing.T, how string) {
	n := nettest.New(t, 2)
	for _, line := range leave(t, n, 1) {
		fmt.Println(line)
	}
	_, err := bufio.NewReader(os.Stdin).ReadString('\n')
	require.NoError(t, err)
	switch how {
	case "panic":
		panic("as was asked for")
	case "fatal":
		t.Fatal("as was asked for")
	case "goroutine panic":
		go panic("as was asked for")
		select {}
	case "exit":
		os.Exit(3)
	}
	select {}
}

// Nothing is left when a test panics, or when its process has no time to clean up.
func TestProcessIsGone(t *testing.T) {
	if how, ok := os.LookupEnv(endVariable); ok {
		litterAndEnd(t, how)
		return
	}
	nettest.New(t, 1)
	self, err := os.Executable()
	require.NoError(t, err)
	for _, how := range []string{"panic", "fatal", "goroutine panic", "exit", "kill"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			command := exec.CommandContext(t.Context(), self, "-test.run", "^TestProcessIsGone$")
			// The process uses directories of this test, because it cannot remove its own.
			command.Env = append(os.Environ(), endVariable+"="+how, "TMPDIR="+t.TempDir(), "GORACE=atexit_sleep_ms=0")
			input, err := command.StdinPipe()
			require.NoError(t, err)
			output, err := command.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, command.Start())
			var lines []string
			for scan := bufio.NewScanner(output); len(lines) < 3; lines = append(lines, scan.Text()) {
				require.True(t, scan.Scan())
			}
			all := watch(t, lines)
			if how == "kill" {
				require.NoError(t, command.Process.Kill())
			} else {
				_, err = fmt.Fprintln(input)
				require.NoError(t, err)
			}
			require.Error(t, command.Wait())
			requireEnd(t, all)
		})
	}
}

// A function that ends its goroutine does not hang its caller, and its thread returns to its namespace.
func TestDo(t *testing.T) {
	n := nettest.New(t, 1)
	before := machine(t)
	require.ErrorContains(t, n.Do(0, func() error { runtime.Goexit(); return nil }), "nettest: the function ended its goroutine")
	wrong := errors.New("wrong")
	require.ErrorIs(t, n.Do(0, func() error { return wrong }), wrong)
	require.Equal(t, before, machine(t))
}

// A command runs as the program itself, without a process around it, and inherits files.
func TestCommand(t *testing.T) {
	n := nettest.New(t, 1)
	from, to, err := os.Pipe()
	require.NoError(t, err)
	defer from.Close()
	_, err = to.WriteString("inherited\n")
	require.NoError(t, err)
	require.NoError(t, to.Close())
	command := n.Command(0, "sh", "-c", "echo $$; cat <&3; exit 3")
	command.ExtraFiles = []*os.File{from}
	output, err := command.Output()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, 3, exit.ExitCode())
	require.Equal(t, fmt.Sprintf("%d\ninherited\n", command.Process.Pid), string(output))
}
