package shm

import (
	"crypto/hmac"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/onesided/rma/verbs"
)

// open maps the neighbor's segment.
func (n *neighbor) open() error {
	n.opening.Lock()
	defer n.opening.Unlock()
	if n.mapped.Load() {
		return nil
	}
	if err := n.gone(); err != nil {
		return err
	}
	if n.address == n.process.address {
		n.memory, n.head = n.process.memory, n.process.head
		n.mapped.Store(true)
		return nil
	}
	fd, size, err := n.requestSegment()
	if err != nil {
		if gone := n.gone(); gone != nil {
			return gone
		}
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil || stat.Size != size || size < segmentStart || size > maxSegment {
		return fmt.Errorf("shm: process %d: segment of %d bytes, said to be %d: %w", n.pid, stat.Size, size, errors.Join(err, verbs.StatusRemoteInvalid))
	}
	if seals, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0); err != nil || seals&unix.F_SEAL_SHRINK == 0 {
		return fmt.Errorf("shm: process %d: segment can be cut short: %w", n.pid, errors.Join(err, verbs.StatusRemoteInvalid))
	}
	memory, err := mapShared(fd, int(size))
	if err != nil {
		return n.process.unreached(n.address, err)
	}
	if head := headOf(memory); head.magic.Load() != segmentMagic || head.size.Load() != uint64(size) {
		return errors.Join(fmt.Errorf("shm: process %d: segment of another version: %w", n.pid, verbs.StatusRemoteInvalid), unmap(memory))
	}
	n.process.advise(memory)
	n.memory, n.head = memory, headOf(memory)
	n.mapped.Store(true)
	return nil
}

// await lets close end the wait for a response on a connection. It reports whether requests may still be sent.
func (p *process) await(conn *net.UnixConn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.shut {
		p.awaiting[conn] = struct{}{}
	}
	return !p.shut
}

// awaited ends await.
func (p *process) awaited(conn *net.UnixConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.awaiting, conn)
}

// requestSegment requests the descriptor of the neighbor's segment.
func (n *neighbor) requestSegment() (fd int, size int64, err error) {
	conn, err := net.DialUnix("unixpacket", nil, n.conn.RemoteAddr().(*net.UnixAddr))
	if err != nil {
		return -1, 0, n.process.unreached(n.address, err)
	}
	defer func() { _ = conn.Close() }()
	peer, err := credentials(conn)
	if err != nil {
		return -1, 0, err
	}
	if int(peer.Pid) != n.pid {
		return -1, 0, fmt.Errorf("shm: process %d is there in place of process %d: %w", peer.Pid, n.pid, verbs.ErrPeerGone)
	}
	if !n.process.await(conn) {
		return -1, 0, n.process.closedError("reaching " + n.address)
	}
	defer n.process.awaited(conn)
	_ = conn.SetDeadline(time.Now().Add(n.process.handshakeLimit))
	if err := n.process.prove(conn, n.address); err != nil {
		return -1, 0, n.process.unreached(n.address, err)
	}
	nonce := make([]byte, nonceBytes)
	_, _ = rand.Read(nonce) // it never fails
	if _, err := conn.Write(append([]byte{askSegment}, nonce...)); err != nil {
		return -1, 0, n.noResponse(conn, err)
	}
	response, rights := make([]byte, responseBytes+1), make([]byte, unix.CmsgSpace(4))
	got, oob, flags, _, err := conn.ReadMsgUnix(response, rights)
	if err != nil {
		return -1, 0, n.noResponse(conn, err)
	}
	fds, err := descriptorsIn(rights[:oob])
	if err == nil && len(fds) == 0 && flags&unix.MSG_CTRUNC != 0 {
		// A descriptor was sent, for which this process has no room.
		return -1, 0, n.process.unreached(n.address, unix.EMFILE)
	}
	length := binary.LittleEndian.Uint64(response[1:])
	switch {
	case got == 1 && response[0] == rejectKey:
		err = errKey
	case err != nil || got != responseBytes || response[0] != askSegment || len(fds) != 1:
		err = fmt.Errorf("shm: process %d: response of %d bytes with %d descriptors: %w", n.pid, got, len(fds), errors.Join(err, verbs.StatusRemoteInvalid))
	case !hmac.Equal(response[9:responseBytes], n.process.serverProof(n.address, nonce, length)):
		err = fmt.Errorf("%w: %w", errKey, verbs.StatusRemoteInvalid)
	default:
		return fds[0], int64(length), nil
	}
	for _, fd := range fds {
		_ = unix.Close(fd)
	}
	return -1, 0, err
}

// noResponse returns the error of a request that failed with err. The neighbor may have rejected the proof and closed
// the connection before the request arrived. The system reports the end first, and then returns what was sent before
// it.
func (n *neighbor) noResponse(conn *net.UnixConn, err error) error {
	if errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET) {
		response := make([]byte, responseBytes)
		got, again := conn.Read(response)
		if errors.Is(again, unix.ECONNRESET) {
			got, again = conn.Read(response)
		}
		if again == nil && got == 1 && response[0] == rejectKey {
			return errKey
		}
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		// The listener of the neighbor tries again without a word while the system lets it pass on no descriptor.
		return fmt.Errorf("shm: process %d has not passed on its memory within %v, as when it is stopped, or when more descriptors are on their way between processes of its user than its RLIMIT_NOFILE (ulimit -n) allows: %w",
			n.pid, n.process.handshakeLimit, err)
	}
	return n.process.unreached(n.address, err)
}

// descriptorsIn returns the descriptors that came with a packet. They are open in this process, also if there is an
// error.
func descriptorsIn(rights []byte) ([]int, error) {
	messages, err := unix.ParseSocketControlMessage(rights)
	if err != nil {
		return nil, err
	}
	var all []int
	for i := range messages {
		fds, failed := unix.ParseUnixRights(&messages[i])
		all, err = append(all, fds...), errors.Join(err, failed)
	}
	return all, err
}
