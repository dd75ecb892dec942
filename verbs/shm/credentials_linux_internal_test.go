//go:build linux

package shm

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/onesided/rma/internal/allocs"
	"github.com/onesided/rma/internal/bounds"
	"github.com/onesided/rma/verbs"
)

// asOverflowUser runs f on a thread of user 65534, which ends with it.
func asOverflowUser(t *testing.T, f func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("skipped: only root can become another user")
	}
	done := make(chan unix.Errno)
	go func() {
		// The thread is not given back: nothing else runs as that user.
		runtime.LockOSThread()
		// That of package syscall is for all threads.
		_, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, overflowUser, overflowUser, overflowUser)
		if errno == 0 {
			f()
		}
		done <- errno
	}()
	require.Zero(t, <-done)
}

// TestServerOfAnotherUser finds a device of another user at an address, on each connection that it makes there.
func TestServerOfAnotherUser(t *testing.T) {
	address := addressPrefix + "another user's"
	name, _ := socketOf(address)
	var listener *net.UnixListener
	var err error
	asOverflowUser(t, func() { listener, err = net.ListenUnix("unixpacket", name) })
	require.NoError(t, err)
	defer func() { require.NoError(t, listener.Close()) }()
	p := openTest(t)
	_, err = p.link(address)
	require.ErrorIs(t, err, os.ErrPermission)
	require.ErrorContains(t, err, "the peer belongs to user 65534, this process to user 0")

	conn, err := net.DialUnix("unixpacket", nil, name)
	require.NoError(t, err)
	n := &neighbor{process: p, address: address, conn: conn, pid: os.Getpid(), pidfd: noPidfd}
	defer func() { require.NoError(t, conn.Close()) }()
	_, _, err = n.requestSegment()
	require.ErrorIs(t, err, os.ErrPermission)
}

// TestClientOfAnotherUser has another user prove the key and ask for the segment.
func TestClientOfAnotherUser(t *testing.T) {
	p := openTest(t)
	name, _ := socketOf(p.address)
	var conn *net.UnixConn
	var err error
	asOverflowUser(t, func() { conn, err = net.DialUnix("unixpacket", nil, name) })
	require.NoError(t, err)
	require.Empty(t, responseTo(t, p, conn, append([]byte{askSegment}, make([]byte, nonceBytes)...)))
}

// responseTo proves the key of p on a connection, sends a packet, and returns the response.
func responseTo(t *testing.T, p *process, conn *net.UnixConn, packet []byte) []byte {
	t.Helper()
	defer func() { require.NoError(t, conn.Close()) }()
	// Either fails if the other end has closed the connection already.
	_ = p.prove(conn, p.address)
	_, _ = conn.Write(packet)
	response := make([]byte, maxPacket)
	n, err := conn.Read(response)
	if err != nil {
		require.True(t, err == io.EOF || unconnected(err), "%v", err)
	}
	return response[:n]
}

func unconnected(err error) bool {
	var errno unix.Errno
	return errors.As(err, &errno) && (errno == unix.ECONNRESET || errno == unix.EPIPE)
}

// TestAnotherProcess has another process than before listen at an address.
func TestAnotherProcess(t *testing.T) {
	open := openProcesses(t)
	near, far := open(), open()
	p := near.form.(*process)
	n, err := p.link(far.Address())
	require.NoError(t, err)
	n.pid++
	_, _, err = n.requestSegment()
	require.ErrorIs(t, err, verbs.ErrPeerGone)
	require.ErrorContains(t, err, "in place of process")
}

// TestAnotherKey has devices of two keys reject each other, whichever begins, and accept one that is then given the
// right key.
func TestAnotherKey(t *testing.T) {
	var devices [3]*Device
	for i, key := range []string{"the key of a job", "that of another", ""} {
		var err error
		devices[i], err = Open(Options{Key: []byte(key)})
		require.NoError(t, err)
		defer func() { require.NoError(t, devices[i].Close()) }()
	}
	for from, near := range devices {
		for to, far := range devices {
			_, err := near.Neighbor(far.Address())
			if from == to {
				require.NoError(t, err)
				continue
			}
			require.ErrorContains(t, err, "the peer holds another key")
			require.ErrorIs(t, err, os.ErrPermission)
		}
	}
	late, err := Open(Options{Key: []byte("its own")})
	require.NoError(t, err)
	defer func() { require.NoError(t, late.Close()) }()
	late.SetKey([]byte("the key of a job"))
	_, err = late.Neighbor(devices[0].Address())
	require.NoError(t, err)
}

// TestNoProof asks for the segment and for a connection without a proof, and with one that is for another device.
func TestNoProof(t *testing.T) {
	p := openTest(t)
	name, _ := socketOf(p.address)
	for _, packet := range [][]byte{
		append([]byte{askSegment}, make([]byte, nonceBytes)...),
		append([]byte{askConnect}, make([]byte, 8)...),
		{sendProof},
		append(append([]byte{sendProof}, p.clientProof("shm:another", "shm:mine")...), "shm:mine"...),
	} {
		conn, err := net.DialUnix("unixpacket", nil, name)
		require.NoError(t, err)
		_, err = conn.Write(packet)
		require.NoError(t, err)
		response := make([]byte, maxPacket)
		n, err := conn.Read(response)
		if n == 0 {
			require.ErrorIs(t, err, io.EOF)
		} else {
			require.Equal(t, []byte{rejectKey}, response[:n])
			_, err = conn.Read(response)
			require.ErrorIs(t, err, io.EOF)
		}
		require.NoError(t, conn.Close())
	}
	var requests [1]verbs.ConnectionRequest
	require.Zero(t, p.PollConnections(requests[:]))
}

// TestOverflowUser looks that a process shares memory as user 65534 only where that is one user.
func TestOverflowUser(t *testing.T) {
	space := func(text string) fstest.MapFS { return fstest.MapFS{"proc/self/uid_map": {Data: []byte(text)}} }
	require.NoError(t, checkUser(space(""), 1000))
	require.NoError(t, checkUser(space("         0          0 4294967295\n"), overflowUser))
	for _, root := range []fstest.MapFS{space("0 1000 1\n"), space("0 0 65534\n65534 100000 1\n"), {}} {
		var missing *verbs.CapabilityError
		require.ErrorAs(t, checkUser(root, overflowUser), &missing)
	}
}

// TestOpenAsOverflowUser opens a device in a process that is user 65534 in a user name space of its own.
func TestOpenAsOverflowUser(t *testing.T) {
	const variable = "RMA_TEST_OVERFLOW_USER"
	if os.Getenv(variable) != "" {
		require.Equal(t, overflowUser, os.Geteuid())
		_, err := Open(Options{})
		var missing *verbs.CapabilityError
		require.ErrorAs(t, err, &missing)
		require.Equal(t, "tell users apart as user 65534", missing.Capability)
		return
	}
	child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), variable+"=1")
	child.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: overflowUser, HostID: os.Geteuid(), Size: 1}},
	}
	var said bytes.Buffer
	child.Stdout, child.Stderr = &said, &said
	if err := child.Start(); err != nil {
		t.Skipf("skipped: the system makes no user name space: %v", err)
	}
	require.NoError(t, child.Wait(), "%s", &said)
}

// TestNumberOfAnotherProcess reaches memory of the program by the number of a neighbor that has ended,
// which another process has by now: this one.
func TestNumberOfAnotherProcess(t *testing.T) {
	open := openProcesses(t)
	near, far := open(), open()
	memory := []byte("as it was")
	region, err := far.RegisterMemory(memory, verbs.RemoteRead|verbs.RemoteWrite|verbs.LocalWrite)
	require.NoError(t, err)
	to, err := near.Neighbor(far.Address())
	require.NoError(t, err)
	require.NoError(t, to.WriteAt([]byte("it"), region.Remote(), 0))
	require.Equal(t, "it it was", string(memory))

	ended := endedProcess(t)
	n := to.(*neighbor)
	n.mu.Lock()
	mine := n.pidfd
	n.pidfd = ended
	n.mu.Unlock()
	require.ErrorIs(t, to.WriteAt([]byte("we"), region.Remote(), 0), verbs.ErrPeerGone)
	require.ErrorIs(t, to.ReadAt(make([]byte, 2), region.Remote(), 0), verbs.ErrPeerGone)
	require.Equal(t, "it it was", string(memory))

	n.mu.Lock()
	n.pidfd = noPidfd
	n.mu.Unlock()
	require.NoError(t, unix.Close(ended))
	var missing *verbs.CapabilityError
	require.ErrorAs(t, to.WriteAt([]byte("we"), region.Remote(), 0), &missing)
	n.mu.Lock()
	n.pidfd = mine
	n.mu.Unlock()
}

// endedProcess returns the pidfd of a process that has ended.
func endedProcess(t *testing.T) int {
	t.Helper()
	child, err := os.StartProcess("/bin/true", []string{"true"}, &os.ProcAttr{})
	require.NoError(t, err)
	pidfd, err := unix.PidfdOpen(child.Pid, 0)
	require.NoError(t, err)
	_, err = child.Wait()
	require.NoError(t, err)
	return pidfd
}

// FuzzRegions has a peer write anything to an entry of its table: what is reached lies in its mapping, or is refused.
func FuzzRegions(f *testing.F) {
	f.Add(uint64(0), uint64(4096), uint64(segmentStart), ^uint32(0), uint64(8), uint64(8))
	f.Add(uint64(0), ^uint64(0), ^uint64(8), ^uint32(0), uint64(64), uint64(64))
	f.Add(uint64(0), uint64(4096), uint64(segmentStart+4), ^uint32(0), uint64(8), uint64(8))
	f.Add(^uint64(0)-64, uint64(64), uint64(1)<<63, ^uint32(0), ^uint64(0)-8, uint64(8))
	f.Fuzz(func(t *testing.T, address, length, offset uint64, access uint32, at, size uint64) {
		open := openProcesses(t)
		near, far := open(), open()
		to, err := near.form.neighbor(far.Address())
		require.NoError(t, err)
		n := to.(*neighbor)
		const key = 1<<slotBits | 7
		entry := &far.form.(*process).head.regions[key%maxRegions]
		entry.address.Store(address)
		entry.length.Store(length)
		entry.offset.Store(offset)
		entry.access.Store(access)
		entry.key.Store(key)
		allocs.AtMost(t, 2<<10, func() {
			_, _ = n.Map(verbs.RemoteRegion{Address: at, Length: size, RKey: key})
			_, _, _ = n.access(at, int(size%maxMessage), key, verbs.RemoteRead)
		})
		memory, err := n.Map(verbs.RemoteRegion{Address: at, Length: size, RKey: key})
		if err == nil {
			require.Len(t, memory, int(size))
			require.True(t, size == 0 || inside(n, memory) && inPlace(at, memory))
		}
		memory, foreign, status := n.access(at, int(size%maxMessage), key, verbs.RemoteRead)
		if status == verbs.StatusSuccess && !foreign {
			require.Len(t, memory, int(size%maxMessage))
			require.True(t, len(memory) == 0 || inside(n, memory) && inPlace(at, memory))
		}
	})
}

// inside reports whether memory lies in the segment of a neighbor.
func inside(n *neighbor, memory []byte) bool {
	offset := bounds.Address(memory) - bounds.Address(n.memory)
	return bounds.Contains(0, uint64(len(n.memory)), offset, uint64(len(memory)))
}

// inPlace reports whether memory is aligned as its owner's address says.
func inPlace(address uint64, memory []byte) bool {
	return (bounds.Address(memory)-address)%pageBytes == 0
}
