package world

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/onesided/rma/verbs/tcp"
	"github.com/onesided/rma/verbs/tcp/logqueue"
	"github.com/onesided/rma/verbs/tcp/proof"
	"github.com/onesided/rma/world/line"
)

const (
	// mostJoining bounds the clients that have proved the key and whose sessions begin.
	mostJoining = 64
)

// A Listener accepts the sessions of processes that were started at other times, by others: see
// [Dial]. Most programs leave it to window.Serve. Its methods may be called from any goroutine.
type Listener struct {
	settings settings
	key      []byte
	port     *tcp.Port
	// ctx ends when the Listener is closed.
	ctx      context.Context
	cancel   context.CancelFunc
	log      *logqueue.Limited
	joining  chan struct{}
	sessions chan *Session
	running  sync.WaitGroup
}

// Listen listens at a host:port, of which the port may be 0, for clients that begin sessions. The options are
// those of [New], with a key (WithKey, or RMA_KEY_FILE in the environment): without one any process could begin a
// session, which is allowed on loopback addresses only.
//
// Everything goes over the one port. But with RDMA cards, and where [WithAddress] or RMA_ADDRESS says at which addresses
// this process listens, a session takes connections at ports of its own there.
func Listen(ctx context.Context, address string, options ...Option) (*Listener, error) {
	if ctx == nil {
		return nil, fmt.Errorf("world: Listen: %w: nil context", ErrArgument)
	}
	s, key, err := sessionSettings(options, true)
	if err != nil {
		return nil, fmt.Errorf("world: Listen: %w", err)
	}
	// A session leaves neither a table nor a trace: they are of who looks at its own.
	s.statsTo, s.trace = "", ""
	listener, err := s.line().Listen(ctx, address)
	if err != nil {
		return nil, fmt.Errorf("world: Listen: %w", err)
	}
	if s.key == nil && !isLoopback(listener.Addr()) {
		return nil, errors.Join(fmt.Errorf("world: Listen: %w: %s is where other machines connect, and there is no key; set RMA_KEY_FILE, or WithKey, or listen on a loopback address", ErrArgument, listener.Addr()), listener.Close())
	}
	s.port = tcp.NewPort(listener)
	l := &Listener{settings: s, key: key, port: s.port, log: logqueue.NewLimited(s.logger, "world: ", listener.Addr().String()), joining: make(chan struct{}, mostJoining), sessions: make(chan *Session)}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.running.Go(l.accept)
	return l, nil
}

// Addr is where the Listener listens.
func (l *Listener) Addr() net.Addr { return l.port.Addr() }

// Accept gives the next session, which is to be begun (Begin) or ended. It returns ErrClosed when the Listener is closed.
func (l *Listener) Accept(ctx context.Context) (*Session, error) {
	if ctx == nil {
		return nil, fmt.Errorf("world: Accept: %w: nil context", ErrArgument)
	}
	select {
	case s := <-l.sessions:
		return s, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-l.ctx.Done():
		return nil, fmt.Errorf("world: Accept: %w", ErrClosed)
	}
}

// Close ends listening. Sessions that were accepted go on; those whose ranks are not connected yet, which they are
// with the first operation, cannot be any more.
func (l *Listener) Close() error {
	l.cancel()
	err := l.port.Close()
	l.running.Wait()
	l.log.Close()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

func (l *Listener) accept() {
	for {
		carrier, err := l.port.Accept()
		if err != nil {
			return
		}
		l.running.Go(func() {
			if err := l.welcome(carrier); err != nil {
				_ = carrier.Close()
				l.log.Warn("a client was turned away", proof.Class(err, ErrClosed), carrier.RemoteAddr().String(), err)
			}
		})
	}
}

// welcome has a client prove the key, and begins its session.
func (l *Listener) welcome(carrier net.Conn) error {
	conn := l.settings.line().Accept(carrier)
	secure := func() (io.ReadWriter, error) {
		if err := conn.SetDeadline(time.Now().Add(proofTime)); err != nil {
			return nil, err
		}
		return conn, line.Handshake(conn)
	}
	if _, err := l.port.Hear(carrier, secure, l.key, sessionPurpose); err != nil {
		return err
	}
	if err := conn.SetDeadline(time.Time{}); err != nil {
		return err
	}
	select {
	case l.joining <- struct{}{}:
	case <-l.ctx.Done():
		return ErrClosed
	}
	w, err := join(l.ctx, 0, 2, overLine(conn, 0), l.settings)
	<-l.joining
	if err != nil {
		return err
	}
	s := newSession(w, conn)
	select {
	case l.sessions <- s:
		return nil
	case <-s.left:
		err = errors.New("it left before it was accepted")
	case <-l.ctx.Done():
		err = ErrClosed
	}
	s.End(err)
	return errors.Join(err, w.Close())
}
