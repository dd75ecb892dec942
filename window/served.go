package window

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/onesided/rma/aggregate/reduce"
	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/verbs"
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
	name     string
	core     *core
	kind     reduce.Kind
	readOnly bool
}

// mostName is the most bytes that a served window's name has.
const mostName = 128

// As is this rank's part of the window under a name for clients, for Serve.
func (w *Window[T]) As(name string) Served {
	return Served{name: name, core: w.view.core, kind: w.view.kind}
}

// ReadOnly is the same window, of which clients only read: with Get, or operations of the accumulate family with NoOp, and
// under shared locks. Another operation of theirs is an ErrReadOnly.
func (s Served) ReadOnly() Served {
	s.readOnly = true
	return s
}

// check says why a window cannot be served.
func (s *Served) check() error {
	switch {
	case s.core == nil:
		return fmt.Errorf("%w: no window: a Served is made by As", ErrArgument)
	case s.name == "" || len(s.name) > mostName || strings.ContainsFunc(s.name, func(r rune) bool { return r < ' ' || r > '~' }):
		return fmt.Errorf("%w: a name has 1 to %d printable characters", ErrArgument, mostName)
	case s.core.closed.Load():
		return ErrClosed
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
		return ErrClosed
	}
	if s.guests == nil {
		s.guests = make([]*guest, most)
	}
	if g.seat = slices.Index(s.guests, nil); g.seat < 0 {
		return ErrNoSeat
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
	session *job.Session
	name    string
	host    *core
	seat    int
	core    *core
	// stopLeaving keeps the guest from leaving when the World of its session is closed.
	stopLeaving func()

	// mu is held while the guest is made, and while words of the host are given back.
	mu sync.Mutex
	// data is the memory as the client reaches it, nil once it does not any more. over tells that
	// the host's memory may be gone, or that the guest has left.
	data *job.Region
	over bool
	// blocks is since when it is known that somebody waits for the lock that the guest holds, which is the one of grants; zero
	// if nobody does.
	blocks time.Time
	grants uint64
}

// lodge makes this window a guest of another, whose part it has.
func (c *core) lodge(host *core) {
	c.host, c.native, c.lockWord = host, host.native, host.lockWord
	c.own.control, c.own.data = host.own.control, host.own.data
	c.raceOrder.orderedAs(&host.raceOrder)
}

// newGuest makes the window that a client attaches to.
func newGuest(session *job.Session, number uint32, served Served) (g *guest, offered description, err error) {
	w, host := session.World(), served.core
	g = &guest{session: session, name: served.name, host: host}
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := host.seats.take(g, host.hints.seats); err != nil {
		return nil, offered, err
	}
	s := host.hints
	s.seats, s.readOnly = 0, served.readOnly
	access := windowAccess
	if s.readOnly {
		access = verbs.RemoteRead
	}
	// The client is told nothing of the control block; that of the part itself is not used but for the end.
	p := part{lent: host}
	err = p.addControl(w, s)
	if err == nil && len(host.own.data) > 0 {
		if g.data, err = w.Register(host.own.data, access); err == nil {
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
	g.session.End(ErrClosed)
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
	g.over = true
	g.host.seats.leave(g)
	return err
}

// show is what the guest has of the window.
func (g *guest) show() Seat {
	g.mu.Lock()
	defer g.mu.Unlock()
	seat := Seat{Window: g.name}
	if !g.over {
		s := g.core.server
		held := s.held.Load()
		seat.Shared, seat.Exclusive = held&(1<<Shared) != 0, held&(1<<Exclusive) != 0
		seat.Waits, seat.Blocks = s.waits.Load() > 0, g.blocking()
	}
	return seat
}

// blocking reports whether a rank that lives, or another client, waits for the lock that the guest holds. It is called with
// the mutex.
func (g *guest) blocking() bool {
	held, host := g.core.server.held.Load(), g.host
	control := &host.own.control
	if held&(1<<Shared) != 0 && host.livingHolder(control.exclusive().Load()) {
		return true
	}
	return held&(1<<Exclusive) != 0 && (control.wishes().Load() != 0 || host.waitedFor())
}

// blocked is how long somebody has waited for the lock that the guest holds, as far as this was called.
func (g *guest) blocked(now time.Time) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.over || !g.blocking() {
		g.blocks = time.Time{}
		return 0
	}
	if grants := g.core.server.grants.Load(); g.blocks.IsZero() || grants != g.grants {
		g.blocks, g.grants = now, grants
	}
	return now.Sub(g.blocks)
}
