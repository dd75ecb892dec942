package shm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/onesided/rma/verbs"
)

// Processes meet on a unix socket in the abstract name space, named at random. A
// connection stays open as long as both devices do: its end tells each that the
// other is gone. On it the client sends packets, each a letter and what follows:
//
//	S                                  the segment, please
//	C locator(8) length(2) hello sender   a connection, please
//
// and the server answers an S with S, the segment's size (8) and its descriptor,
// and a C with nothing: that goes on in shared memory.

const (
	askSegment = 'S'
	askConnect = 'C'
	maxPacket  = 1024
)

type listener struct {
	process *process
	socket  *net.UnixListener
	serving sync.WaitGroup

	mu     sync.Mutex
	closed bool
	open   map[*net.UnixConn]struct{}
}

func socketOf(address string) (*net.UnixAddr, bool) {
	if len(address) <= len(addressPrefix) || address[:len(addressPrefix)] != addressPrefix || len(address) > 64 {
		return nil, false
	}
	return &net.UnixAddr{Name: "@rma-" + address[len(addressPrefix):], Net: "unixpacket"}, true
}

func listen(p *process) (*listener, error) {
	name, _ := socketOf(p.address)
	socket, err := net.ListenUnix("unixpacket", name)
	if err != nil {
		return nil, unable("listen for its peers", err)
	}
	l := &listener{process: p, socket: socket, open: make(map[*net.UnixConn]struct{})}
	l.serving.Go(l.accept)
	return l, nil
}

func (l *listener) accept() {
	for {
		conn, err := l.socket.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			// Out of descriptors, say: what is open goes on, and a new one may
			// be possible later.
			time.Sleep(shortPause)
			continue
		}
		if !l.add(conn) {
			_ = conn.Close()
			return
		}
		l.serving.Go(func() {
			defer l.remove(conn)
			_ = l.serve(conn)
		})
	}
}

func (l *listener) add(conn *net.UnixConn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.open[conn] = struct{}{}
	return true
}

func (l *listener) remove(conn *net.UnixConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, conn)
	_ = conn.Close()
}

// serve answers one peer until it hangs up or breaks the rules.
func (l *listener) serve(conn *net.UnixConn) error {
	if _, err := credentials(conn); err != nil {
		return err
	}
	packet := make([]byte, maxPacket)
	for {
		n, err := conn.Read(packet)
		if err != nil {
			return err
		}
		if n == 0 {
			return nil
		}
		switch packet[0] {
		case askSegment:
			if err := l.answerSegment(conn); err != nil {
				return err
			}
		case askConnect:
			if err := l.connect(packet[1:n]); err != nil {
				return err
			}
		default:
			return fmt.Errorf("shm: packet %q from a peer", packet[:n])
		}
	}
}

// answerSegment gives the segment's descriptor, as soon as the system can pass one on: a
// peer whose connection ended instead would take this process for gone.
func (l *listener) answerSegment(conn *net.UnixConn) error {
	answer := binary.LittleEndian.AppendUint64([]byte{askSegment}, uint64(len(l.process.memory)))
	for {
		_, _, err := conn.WriteMsgUnix(answer, unix.UnixRights(l.process.fd), nil)
		if !isShortage(err) {
			return err
		}
		time.Sleep(shortPause)
	}
}

// connect queues a peer's connection request.
func (l *listener) connect(packet []byte) error {
	if len(packet) < 10 {
		return fmt.Errorf("shm: connection request of %d bytes", len(packet))
	}
	locator, length := binary.LittleEndian.Uint64(packet), int(binary.LittleEndian.Uint16(packet[8:]))
	packet = packet[10:]
	if length > verbs.MaxHello || length > len(packet) {
		return fmt.Errorf("shm: connection request with a hello of %d bytes", length)
	}
	r := &processRequest{to: l.process, hello: append([]byte(nil), packet[:length]...), sender: string(packet[length:]), locator: locator}
	err := l.process.ask(r)
	if errors.Is(err, verbs.ErrRejected) {
		// An answer, not the end of the peer's connection: that stands for the device.
		r.Reject(tooMany)
		return nil
	}
	return err
}

func (l *listener) close() error {
	l.mu.Lock()
	l.closed = true
	for conn := range l.open {
		_ = conn.Close()
	}
	l.mu.Unlock()
	err := l.socket.Close()
	l.serving.Wait()
	return err
}

// credentials gives the process at the other end of a connection, which must belong
// to this process's user.
func credentials(conn *net.UnixConn) (*unix.Ucred, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("shm: %w", err)
	}
	var peer *unix.Ucred
	var failed error
	if err := raw.Control(func(fd uintptr) {
		peer, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return nil, fmt.Errorf("shm: %w", err)
	}
	if failed != nil {
		return nil, fmt.Errorf("shm: SO_PEERCRED: %w", failed)
	}
	return peer, sameUser(peer.Uid, uint32(os.Getuid()))
}

// sameUser refuses a peer of another user.
func sameUser(theirs, ours uint32) error {
	if theirs != ours {
		return fmt.Errorf("shm: the peer belongs to user %d, this process to user %d: %w", theirs, ours, os.ErrPermission)
	}
	return nil
}

// processRequest is a connection that a peer process wants.
type processRequest struct {
	answer
	to      *process
	hello   []byte
	sender  string
	locator uint64
}

func (r *processRequest) Hello() []byte { return r.hello }

func (r *processRequest) Accept(config verbs.QueuePairConfig) (verbs.QueuePair, error) {
	return r.accept(func() (verbs.QueuePair, error) {
		from, out, err := r.reach()
		if err != nil {
			return nil, err
		}
		return r.to.accept(config, from, out)
	})
}

// Reject goes to a peer that it would have to open only while the device is open: one
// that is closed tells its peers by that.
func (r *processRequest) Reject(reason string) {
	if r.given.Swap(true) || r.to.closed.Load() && !r.to.knows(r.sender) {
		return
	}
	if from, out, err := r.reach(); err == nil {
		r.to.reject(from, out, reason)
	}
}

func (r *processRequest) reach() (peer, ring, error) {
	from, err := r.to.neighbor(r.sender)
	if err != nil {
		return nil, ring{}, err
	}
	out, err := from.ringAt(r.locator)
	return from, out, err
}
