//go:build ibverbs && cgo && linux

package ibv

import (
	"context"
	cryptorand "crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/internal/netcall"
	"github.com/onesided/rma/internal/proof"
	"github.com/onesided/rma/verbs"
)

const (
	// purpose is the purpose of the proof of the key.
	purpose = "rma verbs/ibv 1"
	// maxUnproven bounds the connections that are being accepted and have not proved the key.
	maxUnproven = 128
	// A peer that ends the connection before the key is proved, as a full one does, is called again, at most maxCalls
	// times within the limit of a handshake. The pauses grow from firstRest to longestRest.
	maxCalls    = 16
	firstRest   = 50 * time.Millisecond
	longestRest = 400 * time.Millisecond
	// keyOfNobody is the length of the key that stands for no key.
	keyOfNobody = 32
)

// door makes lines.
type door struct {
	device   *device
	limit    time.Duration
	key      []byte
	id       [identitySize]byte
	address  string
	listener net.Listener
	unproven *proof.Room
	lines    lines
	teller   teller
	// working are the goroutines of the door and of its lines.
	working sync.WaitGroup
	// leaving ends the calls that are being made.
	leaving context.Context
	leave   context.CancelFunc
}

// open listens, and sets the device's address.
func (o *door) open(options *Options) error {
	o.key = options.Key
	if n := len(o.key); n != 0 && (n < proof.MinKey || n > proof.MaxKey) {
		return argumentError("Open: Key has %s, allowed are %d to %d, or none", errtext.Count(n, "byte"), proof.MinKey, proof.MaxKey)
	}
	listener, err := netcall.Listen(options.Listen)
	if err != nil {
		return fmt.Errorf("ibv: Open: %w", netcall.Limited(err))
	}
	o.listener = listener
	if err := o.name(options); err != nil {
		_ = listener.Close()
		return err
	}
	o.unproven = proof.NewRoom(maxUnproven)
	o.lines = lines{silence: options.Silence, stop: make(chan struct{}), all: make(map[*line]struct{})}
	o.leaving, o.leave = context.WithCancel(context.Background())
	return nil
}

func (o *door) name(options *Options) error {
	bound, err := netip.ParseAddrPort(o.listener.Addr().String())
	if err != nil {
		return fmt.Errorf("ibv: Open: %w", err)
	}
	if len(o.key) == 0 {
		if !bound.Addr().IsLoopback() {
			return argumentError("Open: Listen is %s, where other machines connect, and Key is empty; set Key, or listen on a loopback address", bound)
		}
		o.key = make([]byte, keyOfNobody)
	}
	host, number := bound.Addr().String(), fmt.Sprint(bound.Port())
	if options.Advertise != "" {
		host = options.Advertise
		if h, p, err := net.SplitHostPort(host); err == nil {
			host, number = h, p
		}
	} else if bound.Addr().IsUnspecified() {
		return argumentError("Open: Listen is %s, which names no host that peers could connect to; set Advertise", bound)
	}
	_, _ = cryptorand.Read(o.id[:]) // it never fails
	o.address = net.JoinHostPort(host, number) + "/" + hex.EncodeToString(o.id[:])
	if _, _, err := parseAddress(o.address); err != nil || strings.ContainsFunc(o.address, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return argumentError("Open: Advertise is %q, must be a host, or a host and a port", options.Advertise)
	}
	return nil
}

// parseAddress takes an address of a device apart.
func parseAddress(address string) (hostPort string, id [identitySize]byte, err error) {
	hostPort, text, ok := strings.Cut(address, "/")
	if ok && len(address) <= 256 && len(text) == hex.EncodedLen(len(id)) {
		if _, _, err := net.SplitHostPort(hostPort); err == nil {
			if _, err := hex.Decode(id[:], []byte(text)); err == nil {
				return hostPort, id, nil
			}
		}
	}
	return "", id, argumentError("Connect: the address %.256q, an address of this device is host:port/%d hexadecimal digits", address, hex.EncodedLen(len(id)))
}

// Address returns the address of the device.
func (o *door) Address() string { return o.address }

// serve accepts calls until the listener is closed.
func (o *door) serve() {
	for {
		conn, err := o.listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			// Most likely the process is out of descriptors, which may become free.
			o.teller.warn("accepting", err)
			o.unproven.MakeRoom()
			time.Sleep(10 * time.Millisecond)
		case o.unproven.Admit(conn):
			o.working.Go(func() { o.receive(conn) })
		case o.leaving.Err() == nil:
			o.teller.warn(proof.ErrFull.Error(), fmt.Errorf("peer %v: %w", conn.RemoteAddr(), proof.ErrFull))
		}
	}
}

// receive makes a line of a call and follows it.
func (o *door) receive(conn net.Conn) {
	r, err := o.hear(conn)
	if err != nil {
		_ = conn.Close()
		if o.leaving.Err() == nil {
			o.teller.warn(proof.Class(err, ErrProtocol), fmt.Errorf("peer %v: %w", conn.RemoteAddr(), err))
		}
		return
	}
	defer o.lines.remove(r.line)
	defer r.line.end()
	if !o.lines.add(r.line) {
		return
	}
	if r.meant != o.id {
		r.line.reject("another device is at this address now")
	} else {
		o.device.ask(r)
	}
	for {
		k, _, err := r.line.receive()
		if err == nil && k != kindReady {
			err = fmt.Errorf("%w: kind %d from the side that called", ErrProtocol, k)
		}
		if err != nil {
			r.lose(o.device.goneError(r.line.peer, err))
			return
		}
		r.begin()
	}
}

// hear lets the caller prove the key and reads its hello.
func (o *door) hear(conn net.Conn) (*connectionRequest, error) {
	_, err := o.unproven.Accept(conn, func() (io.ReadWriter, error) {
		return conn, conn.SetDeadline(time.Now().Add(o.limit))
	}, o.key, purpose)
	if err != nil {
		return nil, err
	}
	l := newLine(conn, "peer "+conn.RemoteAddr().String(), o.lines.silence)
	k, payload, err := l.receive()
	if err != nil {
		return nil, err
	}
	r := &connectionRequest{device: o.device, line: l}
	return r, r.parse(k, payload)
}

// parse parses the first message of the calling side.
func (r *connectionRequest) parse(k kind, payload []byte) error {
	if k == kindHello && len(payload) > 0 && payload[0] != lineVersion {
		r.line.reject(fmt.Sprintf("it speaks version %d of the dialogue, this side version %d", payload[0], lineVersion))
	}
	if k != kindHello || len(payload) < 1+identitySize+endpointSize || payload[0] != lineVersion {
		return fmt.Errorf("%w: kind %d of %s in place of a hello", ErrProtocol, k, errtext.Count(len(payload), "byte"))
	}
	copy(r.meant[:], payload[1:])
	payload = payload[1+identitySize:]
	if err := r.peer.parse(payload[:endpointSize]); err != nil {
		return err
	}
	if r.hello = payload[endpointSize:]; len(r.hello) > verbs.MaxHello {
		return fmt.Errorf("%w: a hello of %s", ErrProtocol, errtext.Count(len(r.hello), "byte"))
	}
	return nil
}

// call makes a line to the device at address and sends the hello.
func (o *door) call(address string, own *endpoint, hello []byte) (*line, error) {
	hostPort, id, err := parseAddress(address)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(o.leaving, o.limit)
	defer cancel()
	for calls, rest := 1, firstRest; ; calls, rest = calls+1, min(2*rest, longestRest) {
		l, err := o.try(ctx, hostPort)
		if err == nil {
			payload := append([]byte{lineVersion}, id[:]...)
			l.send(kindHello, append(own.append(payload), hello...))
			return l, nil
		}
		if !proof.Ended(err) && !netcall.MayPass(err) || calls == maxCalls || ctx.Err() != nil {
			return nil, o.uncalled(hostPort, err)
		}
		select {
		case <-ctx.Done():
			return nil, o.uncalled(hostPort, err)
		case <-time.After(rest/2 + mathrand.N(rest)):
		}
	}
}

// try calls once, and has both sides prove the key.
func (o *door) try(ctx context.Context, hostPort string) (*line, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", hostPort)
	if err != nil {
		return nil, netcall.WithoutAddress(err)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	err = proof.Dial(conn, o.key, purpose)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return newLine(conn, "peer "+hostPort, o.lines.silence), nil
}

// uncalled returns the error and its class if there is no line.
func (o *door) uncalled(hostPort string, err error) error {
	class := netcall.Class(err)
	switch {
	case errors.Is(err, proof.ErrKey), errors.Is(err, proof.ErrVersion), errors.Is(err, proof.ErrProtocol):
		class = verbs.ErrRejected
	case class == verbs.ErrPeerGone && os.IsTimeout(err):
		err = fmt.Errorf("the peer did not respond within %v: %w", o.limit, err)
	}
	return fmt.Errorf("ibv: %s: connecting to %s: %w: %w", o.device.name, hostPort, class, netcall.Limited(err))
}

// shut ends everything, and waits for it.
func (o *door) shut() error {
	o.leave()
	err := o.listener.Close()
	o.unproven.Close()
	o.lines.close()
	return err
}
