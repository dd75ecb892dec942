package window

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/world"
)

// A Server serves windows to clients, within limits, and shows their sessions. The zero Server has the default limits.
// Its methods may be called from any goroutine. A nil Server has no sessions, and its other methods return an
// [ErrArgument].
type Server struct {
	// Limits is read when Serve is called.
	Limits Limits

	mu       sync.Mutex
	last     uint64
	sessions map[uint64]*attendant
	// refusing counts the sessions that are being rejected because the Server has too many.
	refusing int
}

// mostRefusing bounds how many sessions are rejected at the same time. The clients of further sessions try again.
const mostRefusing = 64

// A Session describes the session of a client of a [Server].
type Session struct {
	// ID is the number of the session, for Evict. No other session of the Server has it.
	ID uint64
	// Address is the address of the client. Certificate is that of the client, or nil without TLS.
	Address     net.Addr
	Certificate *x509.Certificate
	// Since is the time at which the session began. Active is the time at which the client last issued operations,
	// accurate to about a second.
	Since, Active time.Time
	// Seats has the seats of the session.
	Seats []Seat
}

// A Seat describes the attachment of a session to a window.
type Seat struct {
	// Window is the name under which the window is served.
	Window string
	// Shared and Exclusive report which lock the session holds. Waits reports whether it waits for a lock. Blocks
	// reports whether a rank or another client waits for a lock that it holds.
	Shared, Exclusive, Waits, Blocks bool
}

// ErrNoSession means that a [Server] has no such session.
var ErrNoSession = errors.New("no such session")

// Serve serves this rank's parts of windows to the clients of a Listener, until ctx ends or the Listener is closed. It
// then ends all sessions and returns nil. Calls of the clients return a *world.PeerError whose cause is a
// world.ErrLeft.
//
// Serve returns an [ErrArgument] at once if there is no window, a name is invalid or used twice, or a window has no
// seats. For a window that is closed it returns an [ErrClosed], and for one of Attach an [ErrAttached].
//
// Clients attach to windows by name: see [Attach]. A lock excludes ranks and clients alike, and accumulates of both are
// atomic to each other. This process may use the windows as before. A client that leaves or dies gives back its locks
// and seats.
//
// The windows are made with the option [Seats], the number of clients that may be attached at once. A further client
// gets an [ErrNoSeat]. A window cannot be closed while it is served.
//
// A client is trusted with the whole content of the windows: it can read all of it. Unless the window is served
// read-only ([Served.ReadOnly]), it can write anything anywhere, with or without a lock: the library does not make
// clients use the locks. A client cannot reach other memory, end this process, or keep a lock or a session beyond the
// [Limits]. Its requests take time of this process, and their rate has no bound. See docs/guide/security.md.
func (s *Server) Serve(ctx context.Context, l *world.Listener, windows ...Served) error {
	if err := checkContext(ctx, "Serve"); err != nil {
		return err
	}
	listener := job.ListenerOf(l)
	switch {
	case s == nil:
		return fmt.Errorf("window: Serve: %w: nil Server", ErrArgument)
	case listener == nil:
		return fmt.Errorf("window: Serve: %w: nil Listener, or one that world.Listen has not made", ErrArgument)
	case len(windows) == 0:
		return fmt.Errorf("window: Serve: %w: no windows", ErrArgument)
	}
	named, seats := make(map[string]Served), 0
	for _, w := range windows {
		err := w.check()
		if _, twice := named[w.name]; twice {
			err = fmt.Errorf("%w: two windows of this name", ErrArgument)
		}
		if err != nil {
			return errtext.Errorf("window: Serve: %q: %w", w.name, err)
		}
		named[w.name] = w
		seats += w.core.hints.Seats
	}
	limits, err := s.Limits.complete(seats)
	if err != nil {
		return errtext.Errorf("window: Serve: %w", err)
	}
	for _, w := range windows {
		if !w.core.seats.hold() {
			return fmt.Errorf("window: Serve: %q: %w", w.name, ErrClosed)
		}
		defer w.core.seats.letGo()
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	running.Go(func() { s.enforce(ctx, &limits) })
	for {
		session, err := listener.Accept(ctx)
		switch {
		case err == nil:
			s.begin(ctx, newAttendant(ctx, session, named, &limits), &running)
		case ctx.Err() != nil || errors.Is(err, world.ErrClosed):
			return nil
		default:
			return errtext.Errorf("window: Serve: %w", err)
		}
	}
}

// begin runs an attendant, or rejects its client if the Server has no place for it.
func (s *Server) begin(ctx context.Context, a *attendant, running *sync.WaitGroup) {
	err := s.admit(a)
	if err == nil {
		running.Go(func() {
			a.run(ctx)
			s.remove(a)
		})
		return
	}
	s.mu.Lock()
	quietly := s.refusing == mostRefusing
	if !quietly {
		s.refusing++
	}
	s.mu.Unlock()
	a.evict(nil)
	running.Go(func() {
		if quietly {
			a.session.TurnAway(err)
		} else {
			a.session.Evict(err)
			s.mu.Lock()
			s.refusing--
			s.mu.Unlock()
		}
		_ = a.session.World().CloseOwn(context.Background())
	})
}

// admit gives an attendant a place. To make room it may end the oldest session that has had time to take a seat and has
// none.
func (s *Server) admit(a *attendant) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	places := a.limits.Sessions
	var oldest *attendant
	for _, other := range s.sessions {
		if other.ctx.Err() != nil {
			continue
		}
		places--
		if !other.seated.Load() && time.Since(other.session.Since()) >= attachShare && (oldest == nil || other.id < oldest.id) {
			oldest = other
		}
	}
	if places <= 0 {
		full := fmt.Errorf("window: the server has %d sessions, and no place for more (Limits.Sessions)", a.limits.Sessions)
		if oldest == nil {
			return full
		}
		oldest.evict(full)
	}
	if s.sessions == nil {
		s.sessions = make(map[uint64]*attendant)
	}
	s.last++
	a.id = s.last
	s.sessions[a.id] = a
	return nil
}

// remove removes an attendant whose session is over from the list, and then closes ended. Evict waits for ended, so
// that its caller finds the session no more.
func (s *Server) remove(a *attendant) {
	s.mu.Lock()
	delete(s.sessions, a.id)
	s.mu.Unlock()
	close(a.ended)
}

// enforce evicts sessions that reach a bound of their limits.
func (s *Server) enforce(ctx context.Context, limits *Limits) {
	ticks := time.NewTicker(limits.period())
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticks.C:
			for _, a := range s.attendants() {
				if why := a.exceeded(now); why != nil {
					a.evict(why)
				}
			}
		}
	}
}

// attendants returns the attendants of all sessions, the oldest first.
func (s *Server) attendants() []*attendant {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*attendant, 0, len(s.sessions))
	for _, a := range s.sessions {
		all = append(all, a)
	}
	slices.SortFunc(all, func(a, b *attendant) int { return int(a.id) - int(b.id) })
	return all
}

// Sessions returns the open sessions, the oldest first.
func (s *Server) Sessions() []Session {
	if s == nil {
		return nil
	}
	all := s.attendants()
	shown := make([]Session, len(all))
	for i, a := range all {
		shown[i] = a.show()
	}
	return shown
}

// Evict ends a session, and returns when its locks and seats are free. Calls of the client return a world.ErrEvicted
// with the text of why. If ctx ends first, Evict returns its error, and the session ends all the same. If there is no
// such session, Evict returns an [ErrNoSession].
func (s *Server) Evict(ctx context.Context, id uint64, why error) error {
	if err := checkContext(ctx, "Evict"); err != nil {
		return err
	}
	switch {
	case s == nil:
		return fmt.Errorf("window: Evict: %w: nil Server", ErrArgument)
	case why == nil:
		return fmt.Errorf("window: Evict: %w: nil reason", ErrArgument)
	}
	s.mu.Lock()
	a := s.sessions[id]
	s.mu.Unlock()
	if a == nil {
		return fmt.Errorf("window: Evict: %w: %d", ErrNoSession, id)
	}
	a.evict(why)
	select {
	case <-a.ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("window: Evict: session %d: %w", id, context.Cause(ctx))
	}
}

// Serve is [Server.Serve] with the default limits.
func Serve(ctx context.Context, l *world.Listener, windows ...Served) error {
	return new(Server).Serve(ctx, l, windows...)
}
