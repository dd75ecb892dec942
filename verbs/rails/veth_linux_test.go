package rails_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/rails"
	"github.com/onesided/rma/verbs/tcp"
)

// sideEnvironment tells a process of TestBothLinks which side it is: each has a network namespace of
// its own.
const sideEnvironment = "RAILS_TEST_SIDE"

// unjoined is what the near side prints if it cannot join the two: it lacks the rights, or the kernel the
// module.
const unjoined = "skipped: network namespaces cannot be joined here"

// apart starts this test as a side, in a network namespace.
func apart(t *testing.T, side string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self, "-test.run=^TestBothLinks$", "-test.v", "-test.timeout=10m")
	cmd.Env = append(os.Environ(), sideEnvironment+"="+side)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET, Pdeathsig: unix.SIGKILL}
	return cmd
}

// TestBothLinks has long writes and reads cross two links between two network namespaces, half of
// the bytes each. When one link is cut the queue pair fails.
func TestBothLinks(t *testing.T) {
	switch os.Getenv(sideEnvironment) {
	case "near":
		nearSide(t)
		return
	case "far":
		farSide(t)
		return
	}
	if os.Geteuid() != 0 {
		t.Skip("skipped: to make a network namespace needs root")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("skipped: to join network namespaces needs the program ip: ", err)
	}
	t.Parallel() // It waits for a silence, in a process of its own.
	said, err := apart(t, "near").CombinedOutput()
	if errors.Is(err, unix.EPERM) {
		t.Skip("skipped: to make a network namespace is not permitted here")
	}
	require.NoError(t, err, "%s", said)
	if _, why, ok := strings.Cut(string(said), unjoined); ok {
		why, _, _ = strings.Cut(why, "\n")
		t.Skip(unjoined + why)
	}
	require.Contains(t, string(said), "--- PASS: TestBothLinks")
	t.Log(string(said))
}

// ip has the program of that name change the network of this process.
func ip(t *testing.T, arguments string) {
	t.Helper()
	said, err := exec.Command("ip", strings.Fields(arguments)...).CombinedOutput()
	require.NoError(t, err, "ip %s: %s", arguments, said)
}

// joinSide gives the links of a side its addresses, which end with its number.
func joinSide(t *testing.T, side int) {
	t.Helper()
	for link := range 2 {
		ip(t, fmt.Sprintf("address add 10.9.%d.%d/24 dev link%d", link, side, link))
		ip(t, fmt.Sprintf("link set link%d up", link))
	}
}

// openSide opens a device of a side, which gives up a link of which nothing is heard for a silence.
func openSide(t *testing.T, side int, silence time.Duration) *node {
	t.Helper()
	var cards []verbs.Device
	for link := range 2 {
		card, err := tcp.Open(tcp.Options{
			Listen: fmt.Sprintf("10.9.%d.%d:0", link, side), Key: make([]byte, 32), Silence: silence, HandshakeLimit: await.Limit,
		})
		require.NoError(t, err)
		cards = append(cards, card)
	}
	device, err := rails.New(cards...)
	require.NoError(t, err)
	return newNode(t, device, 8<<20)
}

func nearSide(t *testing.T) {
	far := apart(t, "far")
	in, err := far.StdinPipe()
	require.NoError(t, err)
	out, err := far.StdoutPipe()
	require.NoError(t, err)
	far.Stderr = os.Stderr
	require.NoError(t, far.Start())
	for link := range 2 {
		add := fmt.Sprintf("link add link%d type veth peer name link%d netns %d", link, link, far.Process.Pid)
		if said, err := exec.Command("ip", strings.Fields(add)...).CombinedOutput(); err != nil {
			require.NoError(t, far.Process.Kill())
			_ = far.Wait()
			t.Skipf(unjoined+": ip %s: %v: %s", add, err, strings.TrimSpace(string(said)))
		}
	}
	joinSide(t, 1)
	n := openSide(t, 1, time.Hour)
	defer func() { require.NoError(t, n.Close()) }()
	_, err = io.WriteString(in, "the links are there\n")
	require.NoError(t, err)
	var address string
	var remote verbs.RemoteRegion
	for lines := bufio.NewScanner(out); address == "" && lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "far "); ok {
			_, err := fmt.Sscan(text, &address, &remote.Address, &remote.Length, &remote.RKey)
			require.NoError(t, err)
		}
	}
	peer := &node{region: place(remote)}
	n.connect(address)
	require.Equal(t, verbs.StateReady, n.pair.State(), "%v", n.pair.Err())
	n.warm(peer)
	before := sent(t)
	const size, rounds = 8 << 20, 8
	for range rounds {
		require.Equal(t, verbs.StatusSuccess, n.do(n.request(verbs.OpRDMAWrite, 0, 0, size, peer, 0)).Status)
	}
	after := sent(t)
	for link := range after {
		bytes := after[link] - before[link]
		t.Logf("link %d: %d MiB of %d", link, bytes>>20, rounds*size>>20)
		require.InDelta(t, 0.5, float64(bytes)/(rounds*size), 0.05)
	}
	// This device has a shorter silence, and notices the cut.
	hasty := openSide(t, 1, 4*time.Second)
	defer func() { require.NoError(t, hasty.Close()) }()
	hasty.connect(address)
	hasty.warm(peer)
	require.Equal(t, verbs.StateReady, hasty.pair.State(), "%v", hasty.pair.Err())
	ip(t, "link set link1 down")
	require.NotEqual(t, verbs.StatusSuccess, hasty.do(hasty.request(verbs.OpRDMAWrite, 0, 0, size, peer, 0)).Status)
	require.Equal(t, verbs.StateError, hasty.pair.State())
	require.ErrorIs(t, hasty.pair.Err(), verbs.ErrPeerGone)
	require.ErrorContains(t, hasty.pair.Err(), "rail 1")
	t.Log(hasty.pair.Err())
	require.NoError(t, in.Close())
	_, err = io.Copy(io.Discard, out)
	require.NoError(t, err)
	require.NoError(t, far.Wait())
}

// place is a region of a peer's.
type place verbs.RemoteRegion

func (p place) Remote() verbs.RemoteRegion { return verbs.RemoteRegion(p) }
func (p place) LKey() uint32               { return 0 }
func (p place) Memory() []byte             { return nil }
func (p place) Deregister() error          { return nil }

// sent is how many bytes each link has sent.
func sent(t *testing.T) (bytes [2]uint64) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/net/dev")
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		name, counts, _ := strings.Cut(strings.TrimSpace(line), ":")
		for link := range bytes {
			if name == fmt.Sprintf("link%d", link) {
				_, err := fmt.Sscan(strings.Fields(counts)[8], &bytes[link])
				require.NoError(t, err)
			}
		}
	}
	return bytes
}

func farSide(t *testing.T) {
	in := bufio.NewReader(os.Stdin)
	_, err := in.ReadString('\n')
	require.NoError(t, err)
	joinSide(t, 2)
	n := openSide(t, 2, time.Hour)
	remote := n.region.Remote()
	fmt.Println("far", n.Address(), remote.Address, remote.Length, remote.RKey)
	n.accept()
	n.accept()
	over := make(chan struct{})
	go func() {
		_, _ = in.ReadString('\n')
		close(over)
		n.Channel().Wake()
	}()
	n.until(func() bool {
		n.queue.Poll(nil)
		select {
		case <-over:
			return true
		default:
			return false
		}
	})
	require.NoError(t, n.Close())
}
