package window

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/onesided/rma/aggregate/reduce"
	"github.com/onesided/rma/world"
)

// A served window is one that programs use which are not ranks of its job: clients. A client
// has a World of two with the process that serves it, and a window there, of which that process
// has the end: a guest of the window that it serves. The guest has memory and control block of
// that, and works for the client as the server of any window works for a rank that does not
// map it, but that in the words of locks the client is in a seat behind the ranks: so locks,
// stripes and notifications are the same for ranks and clients.
//
// Invariants:
//
//   - A seat is a guest's until nothing of its client can come any more, and until the locks
//     that it had are given back.
//   - A window that is served cannot be closed. When its World is closed all the same, the sessions of its clients end,
//     and no guest touches its memory once that is over: seats.revoke.

// A Served is a window under a name: see Serve.
type Served struct {
	name string
	core *core
	kind reduce.Kind
}

// MostName is the most bytes that a served window's name has.
const MostName = 128

// As is this rank's part of the window under a name for clients, for Serve.
func (w *Window[T]) As(name string) Served { return Served{name, w.core, w.kind} }

// Serve serves this rank's parts of windows to the clients of a Listener, until ctx ends or the Listener is
// closed: it then returns nil, when all sessions are ended, in which calls of the clients fail by world.ErrLeft. Clients attach to windows by their names: see
// Attach. What they do counts as what ranks do: a lock excludes ranks and clients alike, and accumulates of both are
// atomic to each other. This process's calls on the windows go on meanwhile as ever. A client that leaves or
// dies gives back what it holds, and disturbs nobody.
//
// The windows are made with Seats, which bound how many clients each has at once: the next one is refused (ErrSeats). A window
// is not closed while it is served.
func Serve(ctx context.Context, l *world.Listener, windows ...Served) error {
	if ctx == nil || l == nil || len(windows) == 0 {
		return fmt.Errorf("window: Serve: %w: nil context or Listener, or no windows", ErrArgument)
	}
	named := make(map[string]Served)
	for _, s := range windows {
		err := s.check()
		if _, twice := named[s.name]; twice {
			err = fmt.Errorf("%w: two windows of this name", ErrArgument)
		}
		if err != nil {
			return fmt.Errorf("window: Serve: %q: %w", s.name, err)
		}
		named[s.name] = s
	}
	for _, s := range windows {
		if !s.core.seats.hold() {
			return fmt.Errorf("window: Serve: %q: %w", s.name, errClosed)
		}
		defer s.core.seats.letGo()
	}
	ctx, cancel := context.WithCancel(ctx)
	var sessions sync.WaitGroup
	defer sessions.Wait()
	defer cancel()
	for {
		session, err := l.Accept(ctx)
		switch {
		case err == nil:
			sessions.Go(func() { newAttendant(session, named).run(ctx) })
		case ctx.Err() != nil || errors.Is(err, world.ErrClosed):
			return nil
		default:
			return fmt.Errorf("window: Serve: %w", err)
		}
	}
}

// check says why a window cannot be served.
func (s *Served) check() error {
	switch {
	case s.core == nil:
		return fmt.Errorf("%w: no window: a Served is made by As", ErrArgument)
	case s.name == "" || len(s.name) > MostName || strings.ContainsFunc(s.name, func(r rune) bool { return r < ' ' || r > '~' }):
		return fmt.Errorf("%w: a name has 1 to %d printable characters", ErrArgument, MostName)
	case s.core.closed.Load():
		return errClosed
	case s.core.visited != nil:
		return ErrAttached
	case s.core.hints.seats == 0:
		return fmt.Errorf("%w: the window was made without Seats, which say how many clients may be attached to it at once", ErrArgument)
	case s.core.cards == cardsAlone:
		return fmt.Errorf("%w: the window was made with CardAtomics, and cards whose atomics are none for processors", errors.ErrUnsupported)
	}
	return nil
}

// seats are those of a window's clients.
type seats struct {
	mu sync.Mutex
	// guests are by their seats, nil where one is free. serving counts calls of Serve.
	guests  []*guest
	serving int
	// closing tells that the window is closed, or about to be, over that the memory goes.
	closing, over bool
}

// hold keeps the window from being closed until letGo, unless it is about to be.
func (s *seats) hold() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return false
	}
	s.serving++
	return true
}

func (s *seats) letGo() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serving--
}

// close keeps the window from being served, unless it is; open takes that back. Both are called with the mutex of
// epochs, so that no other Close comes between.
func (s *seats) close() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closing = s.closing || s.serving == 0
	return s.closing
}

func (s *seats) open() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closing = false
}

// take gives a guest a seat.
func (s *seats) take(g *guest, most int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return errClosed
	}
	if s.guests == nil {
		s.guests = make([]*guest, most)
	}
	if g.seat = slices.Index(s.guests, nil); g.seat < 0 {
		return ErrSeats
	}
	s.guests[g.seat] = g
	return nil
}

func (s *seats) leave(g *guest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.guests[g.seat] = nil
}

// revoke ends what guests do to the memory, which is about to go.
func (s *seats) revoke() {
	s.mu.Lock()
	s.over = true
	guests := slices.Clone(s.guests)
	s.mu.Unlock()
	for _, g := range guests {
		if g != nil {
			g.revoke()
		}
	}
}

// A guest is a client's end of a window in the process that serves it.
type guest struct {
	session *world.Session
	host    *core
	seat    int
	core    *core
	// stopLeaving keeps the guest from leaving when the World of its session is closed.
	stopLeaving func()

	// mu is held while the guest is made, and while words of the host are given back.
	mu sync.Mutex
	// data is the memory as the client reaches it, nil once it does not any more. over tells that
	// the host's memory may be gone.
	data *world.Region
	over bool
}

// lodge makes this window a guest of another, whose part it has.
func (c *core) lodge(host *core) {
	c.host, c.native, c.lockWord = host, host.native, host.lockWord
	c.own.control, c.own.data = host.own.control, host.own.data
	c.raceOrder.orderedAs(&host.raceOrder)
}

// newGuest makes the window that a client attaches to.
func newGuest(session *world.Session, number uint32, host *core) (g *guest, offered description, err error) {
	w := session.World()
	g = &guest{session: session, host: host}
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := host.seats.take(g, host.hints.seats); err != nil {
		return nil, offered, err
	}
	s := host.hints
	s.seats = 0
	// The client is told nothing of the control block; that of the part itself is not used but for the end.
	p := part{lent: host}
	err = p.addControl(w, s)
	if err == nil && len(host.own.data) > 0 {
		if g.data, err = w.Register(host.own.data, windowAccess); err == nil {
			p.memory, p.regions = host.own.data, append(p.regions, g.data)
		}
	}
	if err == nil {
		offered.describe(&p)
		p.regions = p.regions[:1]
		g.core, err = newCore(w, number, s, &p, false)
	}
	if err != nil {
		host.seats.leave(g)
		return nil, offered, errors.Join(err, g.withdraw(), p.release())
	}
	g.core.seat = g.seat
	// The window is closed before, when what the client has sent before it left has come; and its Close waits for this.
	g.stopLeaving = w.OnClose(g.leave)
	g.core.open([]description{offered, emptyPart()}, reachMapped, false)
	return g, offered, nil
}

// emptyPart is the description of a part that has no memory.
func emptyPart() description { return description{alignment: 1} }

// withdraw has the client reach the memory no more. It is called with the mutex.
func (g *guest) withdraw() error {
	data := g.data
	g.data = nil
	if data == nil {
		return nil
	}
	return data.Deregister()
}

// revoke ends what the guest does to the host's memory, and the session, in which the client may wait for it.
func (g *guest) revoke() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.over = true
	if g.core != nil {
		g.core.server.end()
	}
	_ = g.withdraw()
	g.session.End(errClosed)
}

// detach ends the guest of a client that has closed its window.
func (g *guest) detach() error {
	g.stopLeaving()
	g.core.shut()
	g.core.withdraw()
	err := g.core.release()
	return errors.Join(g.leave(), err)
}

// leave gives the seat free, when nothing of the client can come any more, and the locks back that
// it had.
func (g *guest) leave() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	err := g.withdraw()
	if !g.over {
		g.core.server.giveBack(Shared, client)
		g.core.server.giveBack(Exclusive, client)
	}
	g.host.seats.leave(g)
	return err
}
