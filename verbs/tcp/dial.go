package tcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"time"

	"github.com/onesided/rma/internal/netcall"
	"github.com/onesided/rma/internal/proof"
	"github.com/onesided/rma/verbs"
)

const (
	// The pauses of a side that is short of resources grow from shortestPause to longestPause.
	shortestPause = 5 * time.Millisecond
	longestPause  = 100 * time.Millisecond
	// A peer that ends the connection before the proof is over, as a full one does, is called again, at most maxCalls
	// times within Options.HandshakeLimit. The pauses grow from firstRest to longestRest, so that callers spread out.
	// Together they take 5 s: a peer that ends 16 calls is not merely full.
	maxCalls    = 16
	firstRest   = 50 * time.Millisecond
	longestRest = 400 * time.Millisecond
)

// Connect starts a connection.
func (d *device) Connect(address string, hello []byte, config verbs.QueuePairConfig) (verbs.QueuePair, error) {
	if d.closed.Load() {
		return nil, d.closedError("Connect")
	}
	if len(hello) > verbs.MaxHello {
		return nil, argumentError("Connect: hello of %d bytes, at most %d are allowed", len(hello), verbs.MaxHello)
	}
	d.connectionManager.mu.Lock()
	defer d.connectionManager.mu.Unlock()
	if d.connectionManager.closed {
		return nil, d.closedError("Connect")
	}
	c := newConnection(d, "peer "+printable([]byte(address[:min(len(address), 256)])), phaseDialing)
	ctx, cancel := context.WithTimeout(context.Background(), d.connectionManager.limit)
	c.cancel = cancel
	q, err := d.newPair(config, c)
	if err != nil {
		cancel()
		return nil, err
	}
	hello = append([]byte(nil), hello...)
	c.pair = q
	d.connectionManager.makers.Go(func() {
		defer cancel()
		s, err := d.connectionManager.dial(ctx, address, hello)
		c.mu.Lock()
		defer c.mu.Unlock()
		switch {
		case c.phase != phaseDialing:
			if s != nil {
				s.close()
			}
		case err != nil:
			c.fail(err, shutdownNow)
		default:
			c.start(s, phaseAwaiting)
		}
	})
	return q, nil
}

// dial is the handshake of the calling side.
func (m *connectionManager) dial(ctx context.Context, address string, hello []byte) (stream, error) {
	hostPort, id, shared, err := parseAddress(address)
	if err != nil {
		return nil, err
	}
	fail := func(err error) (stream, error) { return nil, m.unconnected(ctx, hostPort, err) }
	var ended error // of the call before
	for calls, rest := 1, m.rest; ; calls, rest = calls+1, min(2*rest, longestRest) {
		s, again, err := m.try(ctx, hostPort, id, shared, hello)
		switch {
		case err == nil:
			return s, nil
		case !again && ended != nil && ctx.Err() != nil:
			// The reason why the peer ended the previous call says more than the timeout of this one.
			return fail(fmt.Errorf("%w; it ended the call before: %w", err, ended))
		case !again || calls == maxCalls:
			return fail(err)
		}
		ended = err
		select {
		case <-ctx.Done():
			return fail(err)
		case <-time.After(rest/2 + rand.N(rest)):
		}
	}
}

// unconnected returns the error of a dial that has ended with err.
func (m *connectionManager) unconnected(ctx context.Context, hostPort string, err error) error {
	class := netcall.Class(err)
	if errors.Is(err, proof.ErrKey) || errors.Is(err, proof.ErrVersion) || errors.Is(err, proof.ErrProtocol) {
		class = verbs.ErrRejected
	}
	if class == verbs.ErrPeerGone && ctx.Err() == context.DeadlineExceeded {
		err = fmt.Errorf("the peer did not respond within %v: %w", m.limit, err)
	}
	return refused("connecting to "+hostPort, fmt.Errorf("%w: %w", class, err))
}

// try calls once. again reports whether the peer has ended the connection without having learned anything from it, so
// that another call makes sense.
func (m *connectionManager) try(ctx context.Context, hostPort string, id identity, shared bool, hello []byte) (s stream, again bool, err error) {
	conn, err := call(ctx, hostPort)
	if err != nil {
		// A reset may arrive before the call returns.
		return nil, proof.Ended(err), err
	}
	// The end of the context, early or not, ends the calls that follow.
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	called := conn
	if shared {
		called = &throughConn{Conn: conn}
		err = callThrough(conn, id)
	}
	var w io.ReadWriter
	if err == nil {
		w, err = m.prove(called, hostPort)
	}
	if err != nil {
		again = proof.Ended(err)
	} else {
		s, err = m.greet(conn, w, id, hello)
	}
	if !stop() && err == nil {
		s.close()
		err = ctx.Err()
	}
	if err != nil {
		_ = conn.Close()
		return nil, again, err
	}
	return s, false, nil
}

// call dials, and again if this side is short of resources, which may become free.
func call(ctx context.Context, hostPort string) (net.Conn, error) {
	var dialer net.Dialer
	var lack error
	for pause := shortestPause; ; pause = min(2*pause, longestPause) {
		conn, err := dialer.DialContext(ctx, "tcp", hostPort)
		switch {
		case err == nil:
			return conn, nil
		case netcall.MayPass(err):
			lack = netcall.WithoutAddress(err)
		case lack != nil && (os.IsTimeout(err) || ctx.Err() != nil):
			// This side's shortage took the time, not the peer.
			return nil, lack
		default:
			return nil, netcall.WithoutAddress(err)
		}
		select {
		case <-ctx.Done():
			return nil, lack
		case <-time.After(pause):
		}
	}
}

// refused returns the error of a system call. If it hit a limit of descriptors, the error names the limit.
func refused(call string, err error) error {
	return fmt.Errorf("tcp: %s: %w", call, netcall.Limited(err))
}

// prove makes both sides prove the key.
func (m *connectionManager) prove(conn net.Conn, hostPort string) (io.ReadWriter, error) {
	w, err := m.wrap(conn, hostPort)
	if err != nil {
		return nil, err
	}
	if err := proof.Dial(w, m.key, purpose); err != nil {
		if m.options.TLS == nil && proof.Ended(err) {
			return nil, fmt.Errorf("%w: it may demand TLS, which this side does not have", err)
		}
		return nil, err
	}
	return w, nil
}

// greet sends the hello.
func (m *connectionManager) greet(conn net.Conn, w io.ReadWriter, id identity, hello []byte) (stream, error) {
	// Before the hello: after it the peer has a connection that can break.
	s, err := takeSocket(conn)
	if err != nil {
		return nil, err
	}
	message := make([]byte, paddedSize, paddedSize+maxHelloPayload)
	f := frame{kind: kindHello, length: uint32(len(id) + len(hello))}
	f.encode(message)
	message = append(append(message, id[:]...), hello...)
	if _, err := w.Write(message); err != nil {
		s.close()
		return nil, err
	}
	return m.take(s, conn, w), nil
}
