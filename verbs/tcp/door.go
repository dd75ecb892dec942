package tcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/tcp/proof"
)

const (
	// purpose is what the proof of a key is for.
	purpose = "rma verbs/tcp 1"
	// maxUnproven bounds the connections that are being accepted. Others wait in the
	// system's queue. Who holds the key is through at once, so that of those who keep
	// others waiting the oldest has to go, if it is here for fairShare.
	maxUnproven = 128
	fairShare   = 250 * time.Millisecond
	// The pauses of a side that is short grow from one to the other.
	shortestPause = 5 * time.Millisecond
	longestPause  = 100 * time.Millisecond
	// maxHelloPayload is that of a hello: the identity that is meant, and the hello
	// of Connect.
	maxHelloPayload = identitySize + verbs.MaxHello
)

// door is where connections are made: by a goroutine for each, in blocking calls with
// a deadline. What is made is handed to the device.
type door struct {
	device   *device
	options  Options
	limit    time.Duration
	key      []byte
	id       identity
	address  string
	listener net.Listener
	makers   sync.WaitGroup

	// mu is taken before the device's and never with a connection's.
	mu      sync.Mutex
	waiting map[net.Conn]time.Time // unproven, since when
	closed  bool
	// seats has an entry for each of waiting, ending is closed with the device.
	seats  chan struct{}
	ending chan struct{}
}

// Address of the device.
func (o *door) Address() string { return o.address }

// open begins to accept.
func (o *door) open() {
	o.makers.Go(func() {
		for {
			conn, err := o.listener.Accept()
			switch {
			case errors.Is(err, net.ErrClosed):
				return
			case err != nil:
				// Out of descriptors, most likely: some may come back.
				o.options.Logger.Warn("tcp: accepting", "address", o.address, "error", err)
				time.Sleep(10 * time.Millisecond)
			case o.admit(conn):
				o.makers.Go(func() { o.receive(conn) })
			}
		}
	})
}

// admit waits until another unproven connection can be. It is false when the device
// is closed.
func (o *door) admit(conn net.Conn) bool {
	for !o.sit(0) && !o.sit(o.hurry()) {
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		_ = conn.Close()
		return false
	}
	o.waiting[conn] = time.Now()
	return true
}

// sit takes a seat if one becomes free within the limit. When the device is closed
// that does not matter any more.
func (o *door) sit(limit time.Duration) bool {
	if limit == 0 {
		select {
		case o.seats <- struct{}{}:
			return true
		default:
			return false
		}
	}
	select {
	case o.seats <- struct{}{}:
		return true
	case <-o.ending:
		return true
	case <-time.After(limit):
		return false
	}
}

// hurry ends the oldest connection if it has had its share of time, and tells how long
// the next has.
func (o *door) hurry() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	var oldest net.Conn
	for conn, since := range o.waiting {
		if oldest == nil || since.Before(o.waiting[oldest]) {
			oldest = conn
		}
	}
	if oldest == nil {
		return fairShare
	}
	if left := fairShare - now.Sub(o.waiting[oldest]); left > 0 {
		return left
	}
	_ = oldest.Close()
	// It leaves its seat in a moment. Until then it is not the oldest.
	o.waiting[oldest] = now
	return time.Millisecond
}

// leave gives the seat of a connection free, proven or not.
func (o *door) leave(conn net.Conn) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.waiting, conn)
	<-o.seats
}

// shut ends what is being made.
func (o *door) shut() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	close(o.ending)
	for conn := range o.waiting {
		_ = conn.Close()
	}
	if err := o.listener.Close(); err != nil {
		return fmt.Errorf("tcp: %w", err)
	}
	return nil
}

func (o *door) wait() { o.makers.Wait() }

// receive makes a connection that a peer has begun.
func (o *door) receive(conn net.Conn) {
	peer := conn.RemoteAddr().String()
	s, id, hello, err := o.hear(conn)
	o.leave(conn)
	if err != nil {
		_ = conn.Close()
		o.options.Logger.Warn("tcp: connection refused", "address", o.address, "peer", peer, "error", err)
		return
	}
	c := newConnection(o.device, peer, phaseDialing)
	c.mu.Lock()
	c.start(s, phaseAsked)
	if id != o.id {
		c.reject("the device at this address is another one now")
	}
	asked := c.phase == phaseAsked
	c.mu.Unlock()
	if asked {
		o.device.ask(c, hello)
	}
}

// hear is the handshake of the side that was called.
func (o *door) hear(conn net.Conn) (s stream, id identity, hello []byte, err error) {
	if err := conn.SetDeadline(time.Now().Add(o.limit)); err != nil {
		return nil, id, nil, fmt.Errorf("tcp: %w", err)
	}
	w, err := o.wrap(conn, "")
	if err != nil {
		return nil, id, nil, err
	}
	if err := proof.Accept(w, o.key, purpose); err != nil {
		return nil, id, nil, fmt.Errorf("tcp: %w", err)
	}
	var header [headerSize]byte
	if _, err := io.ReadFull(w, header[:]); err != nil {
		return nil, id, nil, fmt.Errorf("tcp: awaiting the hello: %w", err)
	}
	var f frame
	if err := f.decode(header[:]); err != nil {
		return nil, id, nil, err
	}
	if f.kind != kindHello || int(f.length) < len(id) {
		return nil, id, nil, fmt.Errorf("%w: %v frame of %d bytes in place of a hello", ErrProtocol, f.kind, f.length)
	}
	payload := make([]byte, f.length)
	if _, err := io.ReadFull(w, payload); err != nil {
		return nil, id, nil, fmt.Errorf("tcp: awaiting the hello: %w", err)
	}
	second, err := takeSocket(conn)
	if err != nil {
		return nil, id, nil, err
	}
	return o.take(second, conn, w), identity(payload), payload[len(id):], nil
}

// Connect starts a connection.
func (d *device) Connect(address string, hello []byte, config verbs.QueuePairConfig) (verbs.QueuePair, error) {
	if d.closed.Load() {
		return nil, d.closedError("Connect")
	}
	if len(hello) > verbs.MaxHello {
		return nil, argumentError("Connect: hello of %d bytes, at most %d are allowed", len(hello), verbs.MaxHello)
	}
	d.door.mu.Lock()
	defer d.door.mu.Unlock()
	if d.door.closed {
		return nil, d.closedError("Connect")
	}
	c := newConnection(d, "peer "+printable([]byte(address[:min(len(address), 256)])), phaseDialing)
	ctx, cancel := context.WithTimeout(context.Background(), d.door.limit)
	c.cancel = cancel
	q, err := d.newPair(config, c)
	if err != nil {
		cancel()
		return nil, err
	}
	hello = append([]byte(nil), hello...)
	c.pair = q
	d.door.makers.Go(func() {
		defer cancel()
		s, err := d.door.dial(ctx, address, hello)
		c.mu.Lock()
		defer c.mu.Unlock()
		switch {
		case c.phase != phaseDialing:
			if s != nil {
				s.close()
			}
		case err != nil:
			c.fail(err, partAtOnce)
		default:
			c.start(s, phaseAwaiting)
		}
	})
	return q, nil
}

// dial is the handshake of the side that calls.
func (o *door) dial(ctx context.Context, address string, hello []byte) (stream, error) {
	hostPort, id, err := parseAddress(address)
	if err != nil {
		return nil, err
	}
	fail := func(err error) (stream, error) {
		if isShortage(err) {
			return nil, fmt.Errorf("tcp: connecting to %s: %w: %w", hostPort, verbs.ErrShortage, err)
		}
		if ctx.Err() == context.DeadlineExceeded {
			err = fmt.Errorf("it did not answer within %v: %w", o.limit, err)
		}
		if errors.Is(err, proof.ErrKey) || errors.Is(err, proof.ErrVersion) || errors.Is(err, proof.ErrProtocol) {
			return nil, fmt.Errorf("tcp: connecting to %s: %w: %w", hostPort, verbs.ErrRejected, err)
		}
		return nil, fmt.Errorf("tcp: connecting to %s: %w: %w", hostPort, verbs.ErrPeerGone, err)
	}
	conn, err := call(ctx, hostPort)
	if err != nil {
		return fail(err)
	}
	// The end of the context, early or not, ends the calls that follow.
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	s, err := o.greet(conn, hostPort, id, hello)
	if !stop() && err == nil {
		s.close()
		err = ctx.Err()
	}
	if err != nil {
		_ = conn.Close()
		return fail(err)
	}
	return s, nil
}

// call dials, and again where this side is short of what that takes: some may come back.
func call(ctx context.Context, hostPort string) (net.Conn, error) {
	var dialer net.Dialer
	for pause := shortestPause; ; pause = min(2*pause, longestPause) {
		conn, err := dialer.DialContext(ctx, "tcp", hostPort)
		if err == nil || !isShortage(err) {
			return conn, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(pause):
		}
	}
}

// isShortage tells whether the system of this side refused for want of something. It says
// nothing about the peer.
func isShortage(err error) bool {
	for _, errno := range [...]syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.ENOBUFS, syscall.EADDRNOTAVAIL} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

func (o *door) greet(conn net.Conn, hostPort string, id identity, hello []byte) (stream, error) {
	w, err := o.wrap(conn, hostPort)
	if err != nil {
		return nil, err
	}
	if err := proof.Dial(w, o.key, purpose); err != nil {
		if o.options.TLS == nil && (errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF)) {
			return nil, fmt.Errorf("%w: it may demand TLS, which this side does not have", err)
		}
		return nil, err
	}
	// Before the hello: from there on the peer has a connection that can break.
	s, err := takeSocket(conn)
	if err != nil {
		return nil, err
	}
	message := make([]byte, headerSize, headerSize+maxHelloPayload)
	f := frame{kind: kindHello, length: uint32(len(id) + len(hello))}
	f.encode(message)
	message = append(append(message, id[:]...), hello...)
	if _, err := w.Write(message); err != nil {
		s.close()
		return nil, err
	}
	return o.take(s, conn, w), nil
}

// take hands a connection that is made over to the engine: s is the socket of conn, which
// is not needed any more.
func (o *door) take(s *socket, conn net.Conn, w io.ReadWriter) stream {
	_ = conn.Close()
	tune(s.fd, o.options.Silence)
	if secure, ok := w.(*secured); ok {
		return secure.engage(s)
	}
	return s
}
