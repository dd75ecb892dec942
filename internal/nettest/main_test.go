//go:build linux

package nettest_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/nettest"
)

// roleVariable makes a process of this test binary a process on a host, and names its role.
const roleVariable = "NETTEST_ROLE"

func TestMain(m *testing.M) {
	role, ok := os.LookupEnv(roleVariable)
	if !ok {
		os.Exit(m.Run())
	}
	if err := play(role, os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

var errRole = errors.New("unknown role")

// play listens at address, prints "ready", and plays its role. An echo runs until its input ends.
func play(role, address string, others []string) error {
	listener, err := net.Listen("tcp4", address)
	if err != nil {
		return err
	}
	switch role {
	case "talk":
		return talk(listener, others)
	case "echo":
		go echo(listener)
		fmt.Println("ready")
		_, err := io.Copy(io.Discard, os.Stdin)
		return err
	}
	return fmt.Errorf("%w: %q", errRole, role)
}

// talk sends greetings to all others when a line of input arrives, and prints the greetings of all others.
func talk(listener net.Listener, others []string) error {
	fmt.Println("ready")
	input := bufio.NewReader(os.Stdin)
	if _, err := input.ReadString('\n'); err != nil {
		return err
	}
	for _, other := range others {
		connection, err := net.Dial("tcp4", other)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(connection, "greetings from %v", listener.Addr()); err != nil {
			return err
		}
		if err := connection.Close(); err != nil {
			return err
		}
	}
	for range others {
		connection, err := listener.Accept()
		if err != nil {
			return err
		}
		heard, err := io.ReadAll(connection)
		if err != nil {
			return err
		}
		fmt.Printf("%v says: %s\n", connection.RemoteAddr().(*net.TCPAddr).IP, heard)
	}
	return nil
}

// echo sends back what it receives.
func echo(listener net.Listener) {
	for {
		connection, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer connection.Close()
			_, _ = io.Copy(connection, connection)
		}()
	}
}

// An actor is a process of this binary on a host.
type actor struct {
	*exec.Cmd
	input  io.WriteCloser
	output *bufio.Reader
}

// start starts an actor and returns when it is ready.
func start(t *testing.T, n *nettest.Network, host int, role string, arguments ...string) *actor {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	a := &actor{Cmd: n.Command(host, self, arguments...)}
	a.Env = append(os.Environ(), roleVariable+"="+role, "GORACE=atexit_sleep_ms=0")
	a.Stderr = os.Stderr
	a.input, err = a.StdinPipe()
	require.NoError(t, err)
	output, err := a.StdoutPipe()
	require.NoError(t, err)
	a.output = bufio.NewReader(output)
	require.NoError(t, a.Start())
	line, err := a.output.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "ready\n", line)
	return a
}

func at(n *nettest.Network, host int) string { return n.Address(host).String() + ":4000" }

// Processes on three hosts exchange greetings, each from its own address.
func TestTalk(t *testing.T) {
	t.Parallel()
	const hosts = 3
	n := nettest.New(t, hosts)
	var actors []*actor
	for host := range hosts {
		arguments := []string{at(n, host)}
		for other := range hosts {
			if other != host {
				arguments = append(arguments, at(n, other))
			}
		}
		actors = append(actors, start(t, n, host, "talk", arguments...))
	}
	for _, a := range actors {
		_, err := fmt.Fprintln(a.input, "go")
		require.NoError(t, err)
	}
	for host, a := range actors {
		heard, err := io.ReadAll(a.output)
		require.NoError(t, err)
		require.NoError(t, a.Wait())
		var want []string
		for other := range hosts {
			if other != host {
				want = append(want, fmt.Sprintf("%v says: greetings from %s", n.Address(other), at(n, other)))
			}
		}
		lines := strings.Split(strings.TrimSpace(string(heard)), "\n")
		slices.Sort(lines)
		require.Equal(t, want, lines)
	}
}

// A host has its own network and no other: neither this machine's nor that of another test.
func TestApart(t *testing.T) {
	t.Parallel()
	n, other := nettest.New(t, 2), nettest.New(t, 2)
	require.Equal(t, n.Address(1), other.Address(1))
	start(t, n, 1, "echo", at(n, 1))
	dial := func() error {
		connection, err := net.Dial("tcp4", at(n, 1))
		if err == nil {
			err = connection.Close()
		}
		return err
	}
	require.NoError(t, n.Do(0, dial))
	require.ErrorContains(t, other.Do(0, dial), "connection refused")
	output, err := n.Command(0, "ip", "-o", "link").Output()
	require.NoError(t, err)
	require.Equal(t, 2, strings.Count(string(output), "\n"), "%s", output)
	require.ErrorContains(t, n.Do(0, func() error {
		_, err := net.Dial("tcp4", "203.0.113.1:80")
		return err
	}), "network is unreachable")
}
