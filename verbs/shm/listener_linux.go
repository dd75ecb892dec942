package shm

import (
	"crypto/hmac"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/onesided/rma/internal/descriptors"
	"github.com/onesided/rma/verbs"
)

// Processes connect over a unix socket in the abstract name space, with a random name. A connection stays open while
// both devices are open: its end shows each side that the other is gone. The client sends packets on it, each an ASCII
// letter and its data. The first packet proves the key; the server closes a connection whose first packet does not:
//
//	P mac(32) address     the client's address, and the proof that it has the key
//	S nonce(16)           a request for the segment
//	C locator(8) hello    a connection request
//
// The server responds
//
//	to an S    with S, the segment's size (8), mac(32) and the segment's descriptor
//	to a C     in shared memory
//	to a P     only if the proof is wrong: with R
//
// A client does not wait for a response to its proof, so it can connect to a stopped process. The proof is for one
// server and one client, and only that server receives it, so no other process can use it. The server's mac is for the
// client's nonce.

const (
	sendProof  = 'P'
	askSegment = 'S'
	askConnect = 'C'
	rejectKey  = 'R'
	maxPacket  = 1024
	nonceBytes = 16
	// responseBytes is the length of the response to an S.
	responseBytes = 1 + 8 + macBytes
)

type listener struct {
	process *process
	socket  *net.UnixListener
	serving sync.WaitGroup
	// seats is the maximum length of unproven. freed receives a value when unproven becomes shorter.
	seats int
	freed chan struct{}

	mu     sync.Mutex
	closed bool
	open   map[*net.UnixConn]struct{}
	// unproven are the open connections that have not proved the key, the oldest first.
	unproven []unproven
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
	l := &listener{process: p, socket: socket, seats: seatsWithin(descriptors.Limit()), freed: make(chan struct{}, 1), open: make(map[*net.UnixConn]struct{})}
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
			// The process may be out of descriptors. Open connections continue, and new ones may be possible later.
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

// remove closes a connection that add has added.
func (l *listener) remove(conn *net.UnixConn) {
	l.proven(conn)
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, conn)
	_ = conn.Close()
}

// serve serves one peer until it closes the connection or breaks the protocol.
func (l *listener) serve(conn *net.UnixConn) error {
	if _, err := credentials(conn); err != nil {
		return err
	}
	packet := make([]byte, maxPacket)
	sender, err := l.receiveProof(conn, packet)
	if err != nil {
		return err
	}
	l.proven(conn)
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
			if err := l.sendSegment(conn, packet[1:n]); err != nil {
				return err
			}
		case askConnect:
			if err := l.connect(sender, packet[1:n]); err != nil {
				return err
			}
		default:
			return fmt.Errorf("shm: packet %q from a peer", packet[:n])
		}
	}
}

// receiveProof receives the proof of a client, and returns the client's address.
func (l *listener) receiveProof(conn *net.UnixConn, packet []byte) (sender string, err error) {
	_ = conn.SetReadDeadline(time.Now().Add(l.process.handshakeLimit))
	n, err := conn.Read(packet)
	if err != nil {
		return "", err
	}
	if n < 1+macBytes || packet[0] != sendProof {
		return "", fmt.Errorf("shm: packet of %d bytes from a peer in place of its proof", n)
	}
	sender = string(packet[1+macBytes : n])
	if !hmac.Equal(packet[1:1+macBytes], l.process.clientProof(l.process.address, sender)) {
		_, _ = conn.Write([]byte{rejectKey})
		return "", errKey
	}
	return sender, conn.SetReadDeadline(time.Time{})
}

// sendSegment sends the segment's descriptor, as soon as the system can pass one on. If it closed the connection
// instead, the peer would take this process for gone.
func (l *listener) sendSegment(conn *net.UnixConn, nonce []byte) error {
	if len(nonce) != nonceBytes {
		return fmt.Errorf("shm: request for the segment with a nonce of %d bytes", len(nonce))
	}
	size := uint64(len(l.process.memory))
	response := binary.LittleEndian.AppendUint64([]byte{askSegment}, size)
	response = append(response, l.process.serverProof(l.process.address, nonce, size)...)
	for {
		_, _, err := conn.WriteMsgUnix(response, unix.UnixRights(l.process.fd), nil)
		if !isShortage(err) {
			return err
		}
		time.Sleep(shortPause)
	}
}

// connect queues a peer's connection request.
func (l *listener) connect(sender string, packet []byte) error {
	if len(packet) < 8 || len(packet) > 8+verbs.MaxHello {
		return fmt.Errorf("shm: connection request of %d bytes", len(packet))
	}
	r := &processRequest{to: l.process, hello: append([]byte(nil), packet[8:]...), sender: sender, locator: binary.LittleEndian.Uint64(packet)}
	err := l.process.ask(r)
	if errors.Is(err, verbs.ErrRejected) {
		// This responds to the request and keeps the peer's connection, whose end would mean the end of the device.
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
	l.free()
	err := l.socket.Close()
	l.serving.Wait()
	return err
}

// processRequest is a connection request of a peer process.
type processRequest struct {
	respondsOnce
	to      *process
	hello   []byte
	sender  string
	locator uint64
}

func (r *processRequest) Hello() []byte { return r.hello }

func (r *processRequest) Accept(config verbs.QueuePairConfig) (verbs.QueuePair, error) {
	return r.accept(func() (verbs.QueuePair, error) {
		from, out, err := r.peerAndRing()
		if err != nil {
			return nil, err
		}
		return r.to.accept(config, from, out)
	})
}

// Reject sends the reason to the peer. If this device is closed and not connected to the peer, it does nothing: the
// peer sees that the device is closed.
func (r *processRequest) Reject(reason string) {
	if r.given.Swap(true) || r.to.closed.Load() && !r.to.knows(r.sender) {
		return
	}
	if from, out, err := r.peerAndRing(); err == nil {
		r.to.reject(from, out, reason)
	}
}

// peerAndRing returns the peer that has sent the request, and the peer's ring.
func (r *processRequest) peerAndRing() (peer, ring, error) {
	from, err := r.to.neighbor(r.sender)
	if err != nil {
		return nil, ring{}, err
	}
	out, err := from.ringAt(r.locator)
	return from, out, err
}
