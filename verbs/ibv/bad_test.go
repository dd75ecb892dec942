//go:build ibverbs && cgo && linux

package ibv_test

import (
	"errors"
	"fmt"
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
	"github.com/onesided/rma/verbs/ibv"
)

// These tests change the network. They run in the machine of softroce, where the cards of
// RMA_IBV_DEVICE and RMA_IBV_FAR are at the two ends of a cable, and the program net changes it.
func guest(t *testing.T) (near, far string) {
	near, far = os.Getenv("RMA_IBV_DEVICE"), os.Getenv("RMA_IBV_FAR")
	if near == "" || far == "" {
		t.Skip("skipped: no two cards whose cable may be pulled (RMA_IBV_DEVICE and RMA_IBV_FAR); the virtual machine of softroce has them")
	}
	return near, far
}

func command(t *testing.T, name string, arguments ...string) {
	out, err := exec.Command(name, arguments...).CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// An end is a device with a queue and memory.
type end struct {
	verbs.Device
	queue  verbs.CompletionQueue
	region verbs.MemoryRegion
}

func open(t *testing.T, o ibv.Options) *end {
	d, err := ibv.Open(o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	e := &end{Device: d}
	e.queue, err = d.CreateCompletionQueue(64)
	require.NoError(t, err)
	memory, err := d.AllocateMemory(1 << 16)
	require.NoError(t, err)
	e.region, err = d.RegisterMemory(memory, verbs.LocalWrite|verbs.RemoteWrite|verbs.RemoteRead)
	require.NoError(t, err)
	return e
}

func (e *end) config() verbs.QueuePairConfig {
	return verbs.QueuePairConfig{SendQueue: e.queue, ReceiveQueue: e.queue}
}

// connect connects two ends, and is an error if the far one does not accept.
func connect(t *testing.T, near, far *end) (verbs.QueuePair, error) {
	p, err := near.Connect(far.Address(), nil, near.config())
	require.NoError(t, err)
	var into [1]verbs.ConnectionRequest
	await.True(t, "a request to connect", func() bool { return far.PollConnections(into[:]) == 1 })
	if _, err := into[0].Accept(far.config()); err != nil {
		await.True(t, "the rejection", func() bool { return p.State() == verbs.StateError })
		require.ErrorIs(t, p.Err(), verbs.ErrRejected)
		return p, err
	}
	await.True(t, "the connection", func() bool { return p.State() != verbs.StateConnecting })
	return p, p.Err()
}

// write writes 20000 bytes and gives the completion.
func write(t *testing.T, p verbs.QueuePair, near, far *end) verbs.Completion {
	r := verbs.SendRequest{ID: 7, Opcode: verbs.OpRDMAWrite, Flags: verbs.Signalled, RemoteAddress: far.region.Remote().Address, RKey: far.region.Remote().RKey,
		Segments: []verbs.Segment{{Memory: near.region.Memory()[:20000], LKey: near.region.LKey()}}}
	_, err := p.PostSend([]verbs.SendRequest{r})
	require.NoError(t, err)
	var into [1]verbs.Completion
	await.True(t, "a completion", func() bool { return near.queue.Poll(into[:]) == 1 })
	return into[0]
}

func TestCable(t *testing.T) {
	nearCard, farCard := guest(t)
	near, far := open(t, ibv.Options{Device: nearCard, Answer: time.Millisecond}), open(t, ibv.Options{Device: farCard})
	p, err := connect(t, near, far)
	require.NoError(t, err)
	copy(near.region.Memory(), "over the cable")
	require.Equal(t, verbs.StatusSuccess, write(t, p, near, far).Status)
	require.Equal(t, "over the cable", string(far.region.Memory()[:14]))

	command(t, "net", "pull", "1")
	t.Cleanup(func() { command(t, "net", "plug", "1") })
	c := write(t, p, near, far)
	require.Equal(t, verbs.StatusRetryExceeded, c.Status)
	require.Equal(t, verbs.StateError, p.State())
	require.ErrorIs(t, p.Err(), verbs.StatusRetryExceeded)
	require.ErrorContains(t, p.Err(), nearCard)
	require.ErrorContains(t, p.Err(), "port 1 is down")
	_, err = ibv.Open(ibv.Options{Device: nearCard})
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.ErrorContains(t, err, "port 1 of "+nearCard+" is down")

	command(t, "net", "plug", "1")
	await.True(t, "the port", func() bool {
		d, err := ibv.Open(ibv.Options{Device: nearCard})
		return err == nil && d.Close() == nil
	})
	p, err = connect(t, near, far)
	require.NoError(t, err)
	require.Equal(t, verbs.StatusSuccess, write(t, p, near, far).Status)
}

// Ends that take packets of different sizes use the smaller.
func TestBadMTU(t *testing.T) {
	nearCard, farCard := guest(t)
	for _, sizes := range [][2]int{{0, 256}, {512, 0}, {4096, 1024}} {
		near, far := open(t, ibv.Options{Device: nearCard, MTU: sizes[0]}), open(t, ibv.Options{Device: farCard, MTU: sizes[1]})
		p, err := connect(t, near, far)
		require.NoError(t, err)
		require.Equal(t, verbs.StatusSuccess, write(t, p, near, far).Status)
	}
	_, err := ibv.Open(ibv.Options{Device: nearCard, MTU: 1500})
	require.ErrorContains(t, err, "MTU is 1500, allowed are 256, 512, 1024, 2048 and 4096, or 0 for the largest")
}

func TestBadOptions(t *testing.T) {
	near, far := guest(t)
	for _, c := range []struct {
		options ibv.Options
		want    []string
	}{
		{ibv.Options{Device: "none0"}, []string{"there is no card none0 (RMA_IBV_DEVICE)", near, far}},
		{ibv.Options{Device: near + ":2"}, []string{near + " has no port 2 (RMA_IBV_DEVICE), it has 1"}},
		{ibv.Options{Device: near, GID: "99"}, []string{near + " port 1 (RMA_IBV_GID): there is no GID 99; there are 0 (", "RoCE v2"}},
		{ibv.Options{Device: near, GID: "10.9.9.9"}, []string{"there is no GID 10.9.9.9"}},
		{ibv.Options{Device: near, OnDemand: true}, []string{near + " does not page on demand"}},
	} {
		_, err := ibv.Open(c.options)
		require.ErrorIs(t, err, errors.ErrUnsupported)
		for _, want := range c.want {
			require.ErrorContains(t, err, want)
		}
	}
	for _, c := range []struct {
		options ibv.Options
		want    string
	}{
		{ibv.Options{Device: ":"}, `the name ":" must be a card's name`},
		{ibv.Options{Device: near, Answer: -1}, "answers after -1ns"},
		{ibv.Options{Device: near, Silence: time.Millisecond}, "Silence is 1ms"},
		{ibv.Options{Device: near, Key: []byte("short")}, "Key has 5 bytes, allowed are 16 to 512, or none"},
		{ibv.Options{Device: near, Listen: "0.0.0.0:0", Key: make([]byte, 16)}, "names no host that peers could connect to; set Advertise"},
		{ibv.Options{Device: near, Listen: "0.0.0.0:0"}, "Key is empty"},
	} {
		_, err := ibv.Open(c.options)
		var wrong *verbs.ArgumentError
		require.ErrorAs(t, err, &wrong)
		require.ErrorContains(t, err, c.want)
	}
}

// A peer with another key is rejected, and both sides go on.
func TestBadKey(t *testing.T) {
	nearCard, farCard := guest(t)
	near, far := open(t, ibv.Options{Device: nearCard, Key: []byte(strings.Repeat("a", 16))}), open(t, ibv.Options{Device: farCard, Key: []byte(strings.Repeat("b", 16))})
	p, err := near.Connect(far.Address(), nil, near.config())
	require.NoError(t, err)
	await.True(t, "the rejection", func() bool { return p.State() == verbs.StateError })
	require.ErrorIs(t, p.Err(), verbs.ErrRejected)
	require.Zero(t, far.PollConnections(make([]verbs.ConnectionRequest, 1)))
}

// A queue pair that does not come up says why: here this side has lost its address.
func TestBadTransition(t *testing.T) {
	nearCard, farCard := guest(t)
	near, far := open(t, ibv.Options{Device: nearCard}), open(t, ibv.Options{Device: farCard})
	command(t, "ip", "addr", "del", "10.7.0.2/24", "dev", "end2")
	t.Cleanup(func() {
		command(t, "ip", "addr", "add", "10.7.0.2/24", "dev", "end2")
		command(t, "net", "plug", "2")
	})
	_, err := connect(t, near, far)
	var failed *ibv.TransitionError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, "RTR", failed.State)
	require.Equal(t, farCard, failed.Device)
	require.Equal(t, 1, failed.Port)
	require.Contains(t, failed.Reason, "sgid_index 1")
}

// strangerVariable has the test program be a process with fewer rights.
const strangerVariable = "RMA_IBVTEST_STRANGER"

// asStranger opens the card and registers memory of which it may not lock so much, and tells
// what came of it.
func asStranger() {
	if os.Getenv(strangerVariable) == "" {
		return
	}
	fmt.Println(func() error {
		if err := unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: 1 << 16, Max: 1 << 16}); err != nil {
			return err
		}
		d, err := ibv.Open(ibv.FromEnvironment())
		if err != nil {
			return err
		}
		memory, err := d.AllocateMemory(1 << 20)
		if err == nil {
			_, err = d.RegisterMemory(memory, verbs.LocalWrite)
		}
		return errors.Join(err, d.Close())
	}())
	os.Exit(0)
}

// A user without rights is told which he lacks.
func TestBadUser(t *testing.T) {
	card, _ := guest(t)
	program, err := os.Executable()
	require.NoError(t, err)
	try := func() string {
		c := exec.Command(program)
		c.Env = append(os.Environ(), strangerVariable+"=1")
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		out, err := c.Output()
		require.NoError(t, err)
		return string(out)
	}
	files, err := os.ReadDir("/dev/infiniband")
	require.NoError(t, err)
	mode := func(mode os.FileMode) {
		for _, f := range files {
			require.NoError(t, os.Chmod("/dev/infiniband/"+f.Name(), mode))
		}
	}
	t.Cleanup(func() { mode(0o600) })
	mode(0o600)
	text := try()
	require.Contains(t, text, card+": this user may not open /dev/infiniband/uverbs")
	require.Contains(t, text, "permission denied")
	mode(0o666)
	text = try()
	require.Contains(t, text, card+": registering 1048576 bytes: verbs: not enough memory (this process may lock 65536 bytes, RLIMIT_MEMLOCK: raise it")
}
