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

// A Server serves windows, within limits, and shows who uses them. Its zero value has the default limits. Its methods may
// be called from any goroutine.
type Server struct {
	// Limits are read when Serve is called.
	Limits Limits

	mu       sync.Mutex
	last     uint64
	sessions map[uint64]*attendant
	// refusing counts the sessions that are being refused because there is no place for them.
	refusing int
}

// mostRefusing bounds how many sessions are refused at the same time. The clients of further sessions call again.
const mostRefusing = 64

// A Session is a client of a Server.
type Session struct {
	// ID is the session's number, for Evict. No other session of the Server has it.
	ID uint64
	// Address is where the client connects from. Certificate is the client's, nil without TLS.
	Address     net.Addr
	Certificate *x509.Certificate
	// Since is when the session began, Active when its client last issued operations, to a second or so.
	Since, Active time.Time
	// Seats are those that the session has.
	Seats []Seat
}

// A Seat is what a session has of a window.
type Seat struct {
	// Window is the name under which the window is served.
	Window string
	// Shared and Exclusive tell which lock the session holds. Waits tells that it waits for one, and Blocks that a rank or
	// another client waits for the one that it holds.
	Shared, Exclusive, Waits, Blocks bool
}

// ErrNoSession: there is no such session.
var ErrNoSession = errors.New("no such session")

// Serve serves this rank's parts of windows to the clients of a Listener, until ctx ends or the Listener is
// closed. It then ends all sessions, where the clients' calls fail by world.ErrLeft, and returns nil. Clients attach to windows by their
// names: see Attach. What they do counts as what ranks do: a lock excludes ranks and clients alike, and accumulates of both are
// atomic to each other. This process's calls on the windows go on meanwhile as ever. A client that leaves or
// dies gives back what it holds, and disturbs nobody.
//
// The windows are made with Seats, which bound how many clients each has at once: the next one is refused (ErrNoSeat). A window
// is not closed while it is served.
//
// A client is trusted with the whole content of the windows. It can read all of it and, unless the window is
// [Served.ReadOnly], write anything anywhere, under a lock or not: the library keeps no client to the locks. A client cannot
// reach other memory, keep a lock or a place beyond the Limits, or end this process. What it makes this process do takes
// time of it: a client is not kept from sending requests as fast as it can. See docs/guide/security.md.
func (s *Server) Serve(ctx context.Context, l *world.Listener, windows ...Served) error {
	if err := checkContext(ctx, "Serve"); err != nil {
		return err
	}
	switch {
	case l == nil:
		return fmt.Errorf("window: Serve: %w: nil Listener", ErrArgument)
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
		seats += w.core.hints.seats
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
	listener := job.ListenerOf(l)
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

// begin has an attendant run, or, where there is no place for it, refuse its client.
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
		_ = a.session.World().Close()
	})
}

// admit gives an attendant a place. It may end a session for that: the oldest one that has had time to take a seat and has none.
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

// remove takes an attendant whose session is over off the list. Evict waits for that, so that its caller finds the session no more.
func (s *Server) remove(a *attendant) {
	s.mu.Lock()
	delete(s.sessions, a.id)
	s.mu.Unlock()
	close(a.ended)
}

// enforce evicts sessions that reach a bound.
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

// attendants are those of all sessions, the oldest first.
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

// Sessions returns the sessions that there are, the oldest first.
func (s *Server) Sessions() []Session {
	all := s.attendants()
	shown := make([]Session, len(all))
	for i, a := range all {
		shown[i] = a.show()
	}
	return shown
}

// Evict ends a session, and returns when the locks and seats that it had are free. The client's calls return a
// world.ErrEvicted with the text of why. A session that has ended is an ErrNoSession.
func (s *Server) Evict(ctx context.Context, id uint64, why error) error {
	if err := checkContext(ctx, "Evict"); err != nil {
		return err
	}
	if why == nil {
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
