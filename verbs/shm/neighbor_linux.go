package shm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/onesided/rma/internal/bounds"
	"github.com/onesided/rma/internal/cpucopy"
	"github.com/onesided/rma/verbs"
)

// neighbor is the device of another process, or this one.
type neighbor struct {
	process *process
	address string
	pid     int
	conn    *net.UnixConn
	ended   atomic.Bool
	// keyRejected: the neighbor holds another key.
	keyRejected atomic.Bool

	mu       sync.Mutex
	watchers map[*watch]struct{}
	// pidfd is the pidfd of the neighbor's process, noPidfd if the system gives none or the neighbor has ended. number
	// is its number in the watcher.
	pidfd  int
	number int32
	// unwatched is why the system gives no pidfd.
	unwatched error

	// opening serializes the request for the segment. memory and head are set once, before mapped.
	opening sync.Mutex
	mapped  atomic.Bool
	memory  []byte
	head    *segmentHead
}

// link returns the neighbor at address, connected but perhaps not mapped.
func (p *process) link(address string) (*neighbor, error) {
	p.mu.Lock()
	n := p.peers[address]
	p.mu.Unlock()
	if n != nil {
		return n, nil
	}
	n, err := p.connect(address)
	if err != nil {
		return nil, err
	}
	known, err := p.admit(n)
	if known != n {
		n.closePidfd()
		return known, errors.Join(err, n.conn.Close())
	}
	p.watchProcess(n)
	return n, nil
}

// admit adds a neighbor, unless it is known already or the device is being closed.
func (p *process) admit(n *neighbor) (*neighbor, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shut {
		return nil, p.closedError("reaching " + n.address)
	}
	if known := p.peers[n.address]; known != nil {
		return known, nil
	}
	p.peers[n.address] = n
	p.working.Go(n.listen)
	return n, nil
}

// maxConnects is how often connect tries if the connection ends before this process has sent its proof.
const maxConnects = 8

// connect connects to the device at address.
func (p *process) connect(address string) (*neighbor, error) {
	name, ok := socketOf(address)
	if !ok {
		return nil, &verbs.CapabilityError{Device: p.name, Capability: "reach " + address, Reason: "the address is not of a process on this machine"}
	}
	return p.connectBy(address, func() (*net.UnixConn, error) { return net.DialUnix("unixpacket", nil, name) })
}

// connectBy is connect with a given dial. If this process is stopped between its connect and its proof, the listener
// may have given its seat to another connection: that is not the end of the peer, so connectBy connects again. A peer
// that has ended accepts no connection.
func (p *process) connectBy(address string, dial func() (*net.UnixConn, error)) (*neighbor, error) {
	for try := 1; ; try++ {
		conn, err := dial()
		if err != nil {
			return nil, p.unreached(address, err)
		}
		n := &neighbor{process: p, address: address, conn: conn, watchers: make(map[*watch]struct{})}
		if err = n.identify(); err == nil {
			return n, nil
		}
		err = errors.Join(err, conn.Close())
		if try == maxConnects || !errors.Is(err, unix.EPIPE) && !errors.Is(err, unix.ECONNRESET) {
			return nil, err
		}
	}
}

// identify checks the process at the other end of a new connection, proves the key to it and opens its pidfd.
func (n *neighbor) identify() error {
	peer, err := credentials(n.conn)
	if err != nil {
		return err
	}
	n.pid = int(peer.Pid)
	if err := n.process.prove(n.conn, n.address); err != nil {
		return n.process.unreached(n.address, err)
	}
	n.pidfd, err = peerPidfd(n.conn, n.pid)
	switch {
	case errors.Is(err, unix.ESRCH):
		return fmt.Errorf("shm: process %d: %w", n.pid, verbs.ErrPeerGone)
	case err != nil && isShortage(err):
		return n.process.unreached(n.address, err)
	}
	n.unwatched = err
	return nil
}

// prove sends the proof of this process, the first packet of a connection.
func (p *process) prove(conn *net.UnixConn, server string) error {
	packet := append([]byte{sendProof}, p.clientProof(server, p.address)...)
	_, err := conn.Write(append(packet, p.address...))
	return err
}

// watchProcess watches for the end of the neighbor's process if the system gives its pidfd. The end of the connection
// shows it too, unless a child of the neighbor keeps the connection open.
func (p *process) watchProcess(n *neighbor) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.pidfd != noPidfd {
		n.number, _ = p.watcher.process(n.pidfd, n.end)
	}
}

// listen waits for the end of the connection. The neighbor sends nothing on it, except the rejection of the key. A
// neighbor that sends anything else breaks the protocol and counts as gone.
func (n *neighbor) listen() {
	defer n.end()
	raw, err := n.conn.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Read(func(fd uintptr) bool {
		var one [1]byte
		_, _, err := unix.Recvfrom(int(fd), one[:], unix.MSG_DONTWAIT)
		if err == unix.ECONNRESET {
			// The rejection can be read after the reset.
			_, _, err = unix.Recvfrom(int(fd), one[:], unix.MSG_DONTWAIT)
		}
		if err == nil && one[0] == rejectKey {
			n.keyRejected.Store(true)
		}
		return err != unix.EAGAIN && err != unix.EINTR
	})
}

// end records once that the neighbor is gone, stops watching it, and notifies the watches.
func (n *neighbor) end() {
	n.mu.Lock()
	if n.ended.Swap(true) {
		n.mu.Unlock()
		return
	}
	watchers := n.watchers
	n.watchers = nil
	n.process.watcher.forget(n.number)
	n.closePidfd()
	n.mu.Unlock()
	_ = n.conn.Close()
	if n.process.closed.Load() {
		return
	}
	for w := range watchers {
		w.report(n.gone())
	}
	n.process.channel.Wake()
}

func (n *neighbor) gone() error {
	if n.keyRejected.Load() {
		return fmt.Errorf("shm: process %d: %w: %w", n.pid, verbs.ErrPeerGone, errKey)
	}
	if n.ended.Load() || n.mapped.Load() && n.head.closed.Load() != 0 {
		return fmt.Errorf("shm: process %d: %w", n.pid, verbs.ErrPeerGone)
	}
	return nil
}

func (p *process) neighbor(address string) (peer, error) {
	n, err := p.link(address)
	if err != nil {
		return nil, err
	}
	if n.mapped.Load() {
		return n, nil
	}
	return n, n.open()
}

// knows reports whether the segment of the device at address is mapped.
func (p *process) knows(address string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.peers[address]
	return n != nil && n.mapped.Load()
}

// dial asks the neighbor for a connection, in the background, because its process may respond slowly.
func (p *process) dial(q *queuePair, address string, hello []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shut {
		return p.closedError("Connect")
	}
	p.working.Go(func() {
		if err := p.dialNow(q, address, hello); err != nil {
			p.undialled(q, err)
		}
	})
	return nil
}

func (p *process) dialNow(q *queuePair, address string, hello []byte) error {
	to, err := p.neighborAtLast(address)
	if err != nil {
		return err
	}
	if !q.attach(to) {
		return fmt.Errorf("shm: queue pair: %w", verbs.ErrClosed)
	}
	n := to.(*neighbor)
	packet := binary.LittleEndian.AppendUint64([]byte{askConnect}, q.locator)
	if _, err := n.conn.Write(append(packet, hello...)); err != nil {
		if gone := n.gone(); gone != nil {
			return gone
		}
		return p.unreached(address, err)
	}
	return nil
}

func (p *process) watch(address string, w *watch) error {
	n, err := p.link(address)
	if err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ended.Load() {
		return n.gone()
	}
	n.watchers[w] = struct{}{}
	return nil
}

func (p *process) unwatch(address string, w *watch) {
	p.mu.Lock()
	n := p.peers[address]
	p.mu.Unlock()
	if n != nil {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.watchers, w)
	}
}

// release frees the mapping of the neighbor's segment. Its connection has been closed.
func (n *neighbor) release() error {
	n.opening.Lock()
	defer n.opening.Unlock()
	n.ended.Store(true)
	if n.mapped.Load() && n.address != n.process.address {
		return retire(n, n.memory, n.process.retiredFD, len(n.process.memory))
	}
	return nil
}

// Wake wakes the neighbor if it sleeps.
func (n *neighbor) Wake() { n.head.channel.WakeIfSleeping() }

func (n *neighbor) ringAt(locator uint64) (ring, error) {
	if locator%64 != 0 || !bounds.Contains(segmentStart, uint64(len(n.memory)-segmentStart), locator, ringMemory) {
		return ring{}, fmt.Errorf("shm: process %d: no ring at %#x: %w", n.pid, locator, verbs.StatusRemoteInvalid)
	}
	return ringOver(n.memory[locator : locator+ringMemory]), nil
}

// entry reads the table entry of a key: see segmentHead. It rejects an offset that is not as far into its page as the
// owner's address: aligned words of the owner would not be aligned here.
func (n *neighbor) entry(rkey uint32) (address, length, offset uint64, access verbs.Access, ok bool) {
	e := &n.head.regions[rkey%maxRegions]
	if rkey == 0 || e.key.Load() != rkey {
		return 0, 0, 0, 0, false
	}
	address, length, offset, access = e.address.Load(), e.length.Load(), e.offset.Load(), verbs.Access(e.access.Load())
	inPlace := offset == notInSegment || (offset-address)%pageBytes == 0
	return address, length, offset, access, inPlace && e.key.Load() == rkey
}

func (n *neighbor) access(address uint64, size int, rkey uint32, right verbs.Access) ([]byte, bool, verbs.Status) {
	base, length, offset, access, ok := n.entry(rkey)
	if !ok || access&right == 0 || !bounds.Contains(base, length, address, uint64(size)) {
		return nil, false, verbs.StatusRemoteAccess
	}
	if offset == notInSegment {
		return nil, true, verbs.StatusSuccess
	}
	at := offset + (address - base)
	if !bounds.Contains(0, uint64(len(n.memory)), at, uint64(size)) {
		return nil, false, verbs.StatusRemoteAccess
	}
	return n.memory[at : at+uint64(size) : at+uint64(size)], false, verbs.StatusSuccess
}

// Map returns the region as it is mapped here.
func (n *neighbor) Map(region verbs.RemoteRegion) ([]byte, error) {
	if err := n.gone(); err != nil {
		return nil, err
	}
	base, length, offset, access, ok := n.entry(region.RKey)
	if !ok || access&remoteRights == 0 || !bounds.Contains(base, length, region.Address, region.Length) {
		return nil, fmt.Errorf("shm: Map of %d bytes of process %d: %w", region.Length, n.pid, verbs.StatusRemoteAccess)
	}
	if offset == notInSegment {
		if region.Length == 0 {
			return []byte{}, nil
		}
		return nil, &verbs.CapabilityError{Device: n.process.name, Capability: "map memory of the program of another process", Reason: "only memory of AllocateMemory is shared"}
	}
	at := offset + (region.Address - base)
	if !bounds.Contains(0, uint64(len(n.memory)), at, region.Length) {
		return nil, fmt.Errorf("shm: Map of %d bytes of process %d: %w", region.Length, n.pid, verbs.StatusRemoteAccess)
	}
	return n.memory[at : at+region.Length : at+region.Length], nil
}

// ReadAt copies out of a region.
func (n *neighbor) ReadAt(into []byte, region verbs.RemoteRegion, offset uint64) error {
	return n.copyAt(into, region, offset, verbs.RemoteRead)
}

// WriteAt copies into a region.
func (n *neighbor) WriteAt(from []byte, region verbs.RemoteRegion, offset uint64) error {
	return n.copyAt(from, region, offset, verbs.RemoteWrite)
}

func (n *neighbor) copyAt(mine []byte, region verbs.RemoteRegion, offset uint64, right verbs.Access) error {
	if err := n.gone(); err != nil {
		return err
	}
	if offset > region.Length || uint64(len(mine)) > region.Length-offset {
		return argumentError("%d bytes at %d of a region of %d", len(mine), offset, region.Length)
	}
	if len(mine) == 0 {
		return nil
	}
	theirs, foreign, status := n.access(region.Address+offset, len(mine), region.RKey, right)
	switch {
	case status != verbs.StatusSuccess:
		return fmt.Errorf("shm: %w", status)
	case foreign:
		return n.copyForeign(mine, region.Address+offset, right)
	case right == verbs.RemoteRead:
		cpucopy.Copy(mine, theirs)
	default:
		cpucopy.Copy(theirs, mine)
	}
	return nil
}
