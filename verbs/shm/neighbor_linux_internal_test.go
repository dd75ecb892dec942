//go:build linux

package shm

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/verbs"
)

// openDescriptors counts what files this process has open.
func openDescriptors(t *testing.T) int {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(files)
}

// settled waits until what is counted has come down to limit, as it does when the
// goroutines of the other ends of sockets have seen their ends.
func settled(t *testing.T, count func(*testing.T) int, limit int) {
	t.Helper()
	await.True(t, fmt.Sprintf("no more than %d to be left", limit), func() bool { return count(t) <= limit })
}

// TestCloseWhileConnecting closes devices that have just begun to connect.
func TestCloseWhileConnecting(t *testing.T) {
	target := newSide(t, openProcesses(t)())
	once := func() {
		device, err := Open(Options{})
		require.NoError(t, err)
		queue, err := device.CreateCompletionQueue(4)
		require.NoError(t, err)
		_, err = device.Connect(target.device.Address(), nil, verbs.QueuePairConfig{SendQueue: queue, ReceiveQueue: queue})
		require.NoError(t, err)
		require.NoError(t, device.Close())
		require.Empty(t, device.form.(*process).peers)
	}
	once()
	before := openDescriptors(t)
	for range testsize.N(50) {
		once()
	}
	settled(t, openDescriptors, before)
}

// TestPeersComeAndGo connects to many peers, one after the other, and looks that no socket and no descriptor of a
// process is kept for those that have gone.
func TestPeersComeAndGo(t *testing.T) {
	near := newSide(t, openProcesses(t)())
	once := func() {
		far, err := Open(Options{})
		require.NoError(t, err)
		lost := make(chan error)
		_, err = near.device.Watch(far.Address(), func(cause error) { lost <- cause })
		require.NoError(t, err)
		neighbor, err := near.device.Neighbor(far.Address())
		require.NoError(t, err)
		require.NoError(t, far.Close())
		require.ErrorIs(t, <-lost, verbs.ErrPeerGone)
		again, err := near.device.Neighbor(far.Address())
		require.NoError(t, err)
		require.Same(t, neighbor, again)
	}
	once()
	before := openDescriptors(t)
	for range 20 {
		once()
	}
	settled(t, openDescriptors, before)
	p := near.device.form.(*process)
	p.watcher.mu.Lock()
	defer p.watcher.mu.Unlock()
	require.Empty(t, p.watcher.watched)
}

// TestLinkAfterClose looks that a closed device opens no connection.
func TestLinkAfterClose(t *testing.T) {
	target := newSide(t, openProcesses(t)())
	device, err := Open(Options{})
	require.NoError(t, err)
	require.NoError(t, device.Close())
	before := openDescriptors(t)
	_, err = device.form.(*process).neighbor(target.device.Address())
	require.ErrorIs(t, err, verbs.ErrClosed)
	settled(t, openDescriptors, before)
}

// TestCloseOpensNothing closes a device with the request of a peer that it never opened,
// and looks that it does not go there to reject it.
func TestCloseOpensNothing(t *testing.T) {
	peer, address := pretend(t)
	device, err := Open(Options{})
	require.NoError(t, err)
	p := device.form.(*process)
	require.NoError(t, device.ask(&processRequest{to: p, sender: address, locator: segmentStart}))
	require.NoError(t, device.Close())
	require.NoError(t, peer.SetDeadline(time.Now()))
	_, err = peer.AcceptUnix()
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
}

// pretend listens as a device does, for what a peer may do wrong.
func pretend(t *testing.T) (*net.UnixListener, string) {
	t.Helper()
	address := addressPrefix + "0123456789abcdef0123456789" + fmt.Sprintf("%06d", os.Getpid()%1000000)
	name, ok := socketOf(address)
	require.True(t, ok)
	listener, err := net.ListenUnix("unixpacket", name)
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	return listener, address
}

// TestRegionsComeAndGo registers and deregisters on several goroutines, which hand each
// other the slots of the table, and looks that peers find every region that lives.
func TestRegionsComeAndGo(t *testing.T) {
	open := openProcesses(t)
	near, far := newSide(t, open()), newSide(t, open())
	to, err := near.device.form.neighbor(far.device.Address())
	require.NoError(t, err)
	var working sync.WaitGroup
	for range 4 {
		working.Go(func() {
			for range 5000 {
				region, err := far.device.RegisterMemory(far.memory[:64], verbs.RemoteRead)
				if !assert.NoError(t, err) {
					return
				}
				remote := region.Remote()
				_, _, status := to.access(remote.Address, 64, remote.RKey, verbs.RemoteRead)
				if !assert.Equal(t, verbs.StatusSuccess, status) || !assert.NoError(t, region.Deregister()) {
					return
				}
				_, _, status = to.access(remote.Address, 64, remote.RKey, verbs.RemoteRead)
				if !assert.Equal(t, verbs.StatusRemoteAccess, status) || !assert.ErrorIs(t, region.Deregister(), verbs.ErrClosed) {
					return
				}
			}
		})
	}
	working.Wait()
}

// TestLateRetract takes a region out of the table again when its entry is another's.
func TestLateRetract(t *testing.T) {
	near := newSide(t, openProcesses(t)())
	self, err := near.device.form.neighbor(near.device.Address())
	require.NoError(t, err)
	old, err := near.device.RegisterMemory(near.memory, verbs.RemoteRead)
	require.NoError(t, err)
	require.NoError(t, old.Deregister())
	next, err := near.device.RegisterMemory(near.memory, verbs.RemoteRead)
	require.NoError(t, err)
	require.Equal(t, old.LKey()%maxRegions, next.LKey()%maxRegions)
	near.device.retract(old.(*region))
	require.ErrorIs(t, old.Deregister(), verbs.ErrClosed)
	_, err = self.Map(next.Remote())
	require.NoError(t, err)
}

// TestMisplacedOffset has a peer store an offset at which words that it has aligned would not be: nothing is reached
// there.
func TestMisplacedOffset(t *testing.T) {
	near, far := connected(t, openProcesses(t), verbs.QueuePairConfig{})
	remote := far.region.Remote()
	far.device.form.(*process).head.regions[remote.RKey%maxRegions].offset.Add(4)
	to, err := near.device.Neighbor(far.device.Address())
	require.NoError(t, err)
	_, err = to.Map(remote)
	require.ErrorIs(t, err, verbs.StatusRemoteAccess)
	require.ErrorIs(t, to.ReadAt(make([]byte, 8), remote, 0), verbs.StatusRemoteAccess)
	require.ErrorIs(t, to.WriteAt(make([]byte, 8), remote, 0), verbs.StatusRemoteAccess)
	_, err = near.pair.PostSend([]verbs.SendRequest{{
		ID: 1, Opcode: verbs.OpFetchAdd, Flags: verbs.Signalled, Segments: near.segment(0, 8),
		RemoteAddress: remote.Address, RKey: remote.RKey, Operand: 1,
	}})
	require.NoError(t, err)
	require.Equal(t, []ended{{1, verbs.StatusRemoteAccess}}, endings(near.completions(1)))
	require.Equal(t, make([]byte, 16), far.memory[:16])
}

// A process that is connected and does not respond costs Options.HandshakeLimit. Here that is over before the request
// is sent.
func TestNoResponse(t *testing.T) {
	_, address := pretend(t)
	device, err := Open(Options{HandshakeLimit: time.Hour})
	require.NoError(t, err)
	defer func() { require.NoError(t, device.Close()) }()
	p := device.form.(*process)
	require.Equal(t, time.Hour, p.handshakeLimit)
	p.handshakeLimit = -1
	_, err = p.neighbor(address)
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.ErrorContains(t, err, "write: ")
	_, err = Open(Options{HandshakeLimit: -1})
	require.ErrorContains(t, err, "HandshakeLimit -1ns, must not be negative")
}

// TestBadResponses has a peer respond wrongly to the request for its segment, with
// descriptors: none of them stays open.
func TestBadResponses(t *testing.T) {
	file, err := os.Open("/dev/null")
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	fd := int(file.Fd())
	segment := make([]byte, responseBytes)
	segment[0] = askSegment
	for _, test := range []struct {
		name    string
		text    []byte
		rights  []byte
		message string
	}{
		{"too short", segment[:5], unix.UnixRights(fd), "response of 5 bytes"},
		{"another kind", make([]byte, responseBytes), unix.UnixRights(fd), "response of 41 bytes"},
		{"two descriptors", segment, unix.UnixRights(fd, fd), "with 2 descriptors"},
		{"more than there is room for", segment, unix.UnixRights(fd, fd, fd, fd, fd), "with 2 descriptors"},
		{"no descriptor", segment, nil, "with 0 descriptors"},
		{"no proof", segment, unix.UnixRights(fd), "the peer holds another key"},
		{"no segment", nil, unix.UnixRights(fd), "segment of 0 bytes"},
	} {
		t.Run(test.name, func(t *testing.T) {
			peer, address := pretend(t)
			device, err := Open(Options{})
			require.NoError(t, err)
			p := device.form.(*process)
			var serving sync.WaitGroup
			defer serving.Wait()
			defer func() { require.NoError(t, peer.Close()) }()
			serving.Go(func() {
				for {
					conn, err := peer.AcceptUnix()
					if err != nil {
						return
					}
					serving.Go(func() {
						defer func() { _ = conn.Close() }()
						packet := make([]byte, maxPacket)
						for n, err := conn.Read(packet); n > 0 && err == nil; n, err = conn.Read(packet) {
							if packet[0] == sendProof {
								continue
							}
							text := test.text
							if text == nil {
								text = append(bytes.Clone(segment[:9]), p.serverProof(address, packet[1:n], 0)...)
							}
							_, _, _ = conn.WriteMsgUnix(text, test.rights, nil)
						}
					})
				}
			})
			defer func() { require.NoError(t, device.Close()) }()
			ask := func() {
				_, err = p.neighbor(address)
				require.ErrorIs(t, err, verbs.StatusRemoteInvalid)
				require.ErrorContains(t, err, test.message)
			}
			ask()
			before := openDescriptors(t)
			for range 10 {
				ask()
			}
			settled(t, openDescriptors, before)
		})
	}
}
