package job

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/onesided/rma/internal/bootstrap/bootconn"
	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/internal/logqueue"
	"github.com/onesided/rma/internal/proof"
	"github.com/onesided/rma/verbs/tcp"
)

const (
	// mostJoining bounds the clients that have proved the key and whose sessions were not accepted yet. When another one
	// comes, the oldest goes that has had joinShare.
	mostJoining = 64
	joinShare   = time.Second
	// mostQueued bounds the clients that wait until they are among those, each for joinTime. A client that waits in vain, or
	// does not wait because so many do, is to call again. mostParting bounds those of them that are given endTime to hang up.
	mostQueued  = 128
	mostParting = 64
	// joinTime bounds the exchange with a client.
	joinTime = 10 * time.Second
)

// errJoinTime is why a client is cut off in the exchange.
var errJoinTime = fmt.Errorf("world: a client has %v for the exchange that begins a session", joinTime)

// A Listener accepts the sessions of processes that were started at other times, by others: see
// [Dial]. Most programs leave it to window.Serve. Its methods may be called from any goroutine.
type Listener struct {
	settings Settings
	key      []byte
	port     *tcp.Port
	// ctx ends when the Listener is closed.
	ctx     context.Context
	cancel  context.CancelFunc
	log     *logqueue.Limited
	joining *joining
	// parting has an element for each client that is being turned away.
	parting  chan struct{}
	sessions chan *Session
	running  sync.WaitGroup
}

// Listen listens at an address for clients that begin sessions.
func Listen(ctx context.Context, address string, options ...Option) (*Listener, error) {
	if ctx == nil {
		return nil, nilArgument("Listen", "context")
	}
	if _, _, err := net.SplitHostPort(address); err != nil {
		return nil, fmt.Errorf("world: Listen: %w: %q is not host:port", ErrArgument, address)
	}
	s, key, err := sessionSettings(options, true)
	if err != nil {
		return nil, errtext.Errorf("world: Listen: %w", err)
	}
	// A session leaves neither a table nor a trace: they are of who looks at its own.
	s.statsTo, s.trace = "", ""
	listener, err := s.line().Listen(ctx, address)
	if err != nil {
		return nil, errtext.Errorf("world: Listen: %w", err)
	}
	if s.keyless && !isLoopback(listener.Addr()) {
		return nil, errors.Join(fmt.Errorf("world: Listen: %w: %s is where other machines connect, and WithoutKey is for loopback addresses only; set RMA_SERVE_KEY_FILE, or WithKey, or listen on a loopback address", ErrArgument, listener.Addr()), listener.Close())
	}
	s.port = tcp.NewPort(listener)
	l := &Listener{settings: s, key: key, port: s.port, log: logqueue.NewLimited(s.logger, "world: ", listener.Addr().String()), joining: newJoining(mostJoining, mostQueued, joinTime), parting: make(chan struct{}, mostParting), sessions: make(chan *Session)}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.running.Go(l.accept)
	return l, nil
}

// Addr returns the address at which the Listener listens.
func (l *Listener) Addr() net.Addr { return l.port.Addr() }

// Accept gives the next session, which is to be begun (Begin) or ended. It returns ErrClosed when the Listener is closed.
func (l *Listener) Accept(ctx context.Context) (*Session, error) {
	if ctx == nil {
		return nil, nilArgument("Accept", "context")
	}
	select {
	case s := <-l.sessions:
		return s, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-l.ctx.Done():
		return nil, fmt.Errorf("world: Accept: the Listener is %w", ErrClosed)
	}
}

// Close ends listening; sessions that were accepted continue.
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
				l.log.Warn("a client was turned away", proof.Class(err, ErrClosed, errFull), carrier.RemoteAddr().String(), err)
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
		return conn, bootconn.Handshake(conn)
	}
	if _, err := l.port.Authenticate(carrier, secure, l.key, sessionPurpose); err != nil {
		return err
	}
	if err := conn.SetDeadline(time.Time{}); err != nil {
		return err
	}
	ctx, leave, err := l.joining.enter(l.ctx)
	if err != nil {
		if errors.Is(err, errFull) {
			l.turnAway(conn)
		}
		return err
	}
	defer leave()
	return l.begin(ctx, conn)
}

// turnAway tells a client to call again, and has it hang up first if it does so soon: a socket that is closed with bytes
// unread takes back what it sent.
func (l *Listener) turnAway(conn net.Conn) {
	if say(conn, sentence(serverFull, "")) != nil {
		return
	}
	select {
	case l.parting <- struct{}{}:
		if conn.SetReadDeadline(time.Now().Add(endTime)) == nil {
			_, _ = io.Copy(io.Discard, conn)
		}
		<-l.parting
	default:
	}
}

// sayWhy tells a client which bound has ended its place, if one has.
func sayWhy(place context.Context, conn net.Conn) {
	switch context.Cause(place) {
	case errFull:
		_ = say(conn, sentence(serverFull, ""))
	case errJoinTime:
		_ = say(conn, sentence(parting, errJoinTime.Error()))
	}
}

// begin has a client take part in the exchange, and hands its session to Accept.
func (l *Listener) begin(ctx context.Context, conn net.Conn) error {
	limited, cancel := context.WithTimeoutCause(ctx, joinTime, errJoinTime)
	defer cancel()
	s, settings := newSession(conn, l.settings)
	w, err := join(limited, 0, 2, overLine(conn, 0), settings)
	if err != nil {
		sayWhy(limited, conn)
		return err
	}
	s.start()
	select {
	case l.sessions <- s:
		return nil
	case <-s.left:
		err = errors.New("it left before it was accepted")
	case <-ctx.Done():
		err = context.Cause(ctx)
		sayWhy(ctx, conn)
	}
	s.End(err)
	return errors.Join(err, w.CloseOwn(context.Background()))
}

// joining are the clients that have proved the key and have no session yet.
type joining struct {
	// places has an element for each, and queue one for each client that waits for a place, for patience at most.
	places, queue chan struct{}
	patience      time.Duration

	mu sync.Mutex
	// oldest are those that were not cut off, the oldest first.
	oldest []*joiner
}

func newJoining(places, queue int, patience time.Duration) *joining {
	return &joining{places: make(chan struct{}, places), queue: make(chan struct{}, queue), patience: patience}
}

// A joiner is one of them.
type joiner struct {
	since time.Time
	cut   context.CancelCauseFunc
}

// enter gives a client a place until leave, or until the context that it returns ends: by errFull, when others need the
// place. It returns errFull where too many wait for one, or this client has for too long.
func (j *joining) enter(ctx context.Context) (place context.Context, leave func(), err error) {
	select {
	case j.queue <- struct{}{}:
		defer func() { <-j.queue }()
	default:
		return nil, nil, errFull
	}
	late := time.NewTimer(j.patience)
	defer late.Stop()
	// rest is how long a client that was cut off has to leave its place before another one is.
	for rest := time.Duration(0); ; rest = joinShare {
		wait := time.NewTimer(max(rest, j.untilShare()))
		select {
		case j.places <- struct{}{}:
			wait.Stop()
			place, leave = j.begin(ctx)
			return place, leave, nil
		case <-wait.C:
			j.cutOldest()
		case <-late.C:
			wait.Stop()
			return nil, nil, errFull
		case <-ctx.Done():
			wait.Stop()
			return nil, nil, ErrClosed
		}
	}
}

func (j *joining) begin(ctx context.Context) (context.Context, func()) {
	place, cut := context.WithCancelCause(ctx)
	one := &joiner{time.Now(), cut}
	j.mu.Lock()
	j.oldest = append(j.oldest, one)
	j.mu.Unlock()
	return place, func() {
		j.mu.Lock()
		if at := slices.Index(j.oldest, one); at >= 0 {
			j.oldest = slices.Delete(j.oldest, at, at+1)
		}
		j.mu.Unlock()
		cut(nil)
		<-j.places
	}
}

// untilShare is how long the oldest client has its place at least.
func (j *joining) untilShare() time.Duration {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.oldest) == 0 {
		return joinShare
	}
	return joinShare - time.Since(j.oldest[0].since)
}

// cutOldest cuts off the oldest client, if all places are taken and it has had its share of time.
func (j *joining) cutOldest() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.places) == cap(j.places) && len(j.oldest) > 0 && time.Since(j.oldest[0].since) >= joinShare {
		j.oldest[0].cut(errFull)
		j.oldest = slices.Delete(j.oldest, 0, 1)
	}
}
