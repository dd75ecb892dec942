package tcp

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/onesided/rma/verbs"
)

// cutEnvironment tells a test process that it is in a network namespace of its own.
const cutEnvironment = "TCP_TEST_CUT"

// TestLinkIsCut takes down the network between two devices, in a namespace made for
// that. Nothing is reset then, and nothing answers.
func TestLinkIsCut(t *testing.T) {
	if os.Getenv(cutEnvironment) == "" {
		if os.Geteuid() != 0 {
			t.Skip("skipped: to make a network namespace needs root")
		}
		self, err := os.Executable()
		require.NoError(t, err)
		cmd := exec.Command(self, "-test.run=^TestLinkIsCut$", "-test.v", "-test.timeout=10m")
		cmd.Env = append(os.Environ(), cutEnvironment+"=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET, Pdeathsig: unix.SIGKILL}
		said, err := cmd.CombinedOutput()
		if errors.Is(err, unix.EPERM) {
			t.Skip("skipped: to make a network namespace is not permitted here")
		}
		require.NoError(t, err, "%s", said)
		require.Contains(t, string(said), "--- PASS: TestLinkIsCut")
		return
	}
	setLoopback(t, unix.IFF_UP)
	near, far := openWith(t, Options{}), openWith(t, Options{})
	p, q := join(t, near, far)
	idle, _ := join(t, near, far)
	setLoopback(t, 0)
	large := make([]byte, 1<<20)
	_, err := p.PostSend([]verbs.SendRequest{{
		ID: 1, Opcode: verbs.OpRDMAWrite, Flags: verbs.Signalled, Segments: []verbs.Segment{{Memory: large, LKey: reservedLKey}},
	}})
	require.NoError(t, err)
	const step = 20 // of a silence
	for range 2 * step {
		for _, d := range []*device{near, far} {
			d.age(near.silence / step)
			d.drive()
		}
	}
	for _, pair := range []*queuePair{p, q, idle} {
		require.Equal(t, verbs.StateError, pair.State())
		require.ErrorIs(t, pair.Err(), verbs.ErrPeerGone)
		t.Log(pair.Err())
	}
	var completion [1]verbs.Completion
	require.Equal(t, 1, p.sendCQ.Poll(completion[:]))
	require.NotEqual(t, verbs.StatusSuccess, completion[0].Status)
	// Who connects now learns of it, too.
	far.expectAnswersWithin(minLimit)
	near.expectAnswersWithin(minLimit)
	require.ErrorIs(t, failure(t, connect(t, near, far.Address()), far), verbs.ErrPeerGone)
}

// setLoopback sets the flags of the loopback interface.
func setLoopback(t *testing.T, flags uint16) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	defer unix.Close(fd)
	request, err := unix.NewIfreq("lo")
	require.NoError(t, err)
	request.SetUint16(flags)
	require.NoError(t, unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request))
}
