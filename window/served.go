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

// A served window is used by programs that are not ranks of its job: clients. A client has a World of two ranks with
// the process that serves the window, and a window in that World. The server's end of that window is a guest of the
// served window, its host.
//
// The guest uses the memory and the control block of the host. It serves the client as the server of any window serves
// a rank that does not map it. In the lock words the client has a seat, which is numbered after the ranks. So locks,
// stripes and notifications are the same for ranks and clients.
//
// Invariants:
//
//   - A guest keeps its seat until no message of its client can arrive and the client's locks are given back.
//   - A window that is served cannot be closed. If its World is closed, the sessions of its clients end, and no guest
//     touches the memory after seats.revoke.

// A Served is a window with the name under which it is served: see [Serve].
type Served struct {
	name     string
	core     *core
	kind     reduce.Kind
	readOnly bool
}

// mostName is the maximum length of a served window's name in bytes.
const mostName = 128

// As returns this rank's part of the window with a name for clients, to be passed to [Serve]. A name has 1 to 128
// printable ASCII characters.
func (w *Window[T]) As(name string) Served {
	v := w.of()
	return Served{name: name, core: v.core, kind: v.kind}
}

// ReadOnly returns the same window, which clients may only read: by Get, by operations of the accumulate family with
// [NoOp], and under shared locks. Other operations of clients, and exclusive locks, return an [ErrReadOnly].
func (s Served) ReadOnly() Served {
	s.readOnly = true
	return s
}

// check returns an error if the window cannot be served.
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
	case s.core.hints.Seats == 0:
		return fmt.Errorf("%w: the window was made without Seats, which say how many clients may be attached to it at once", ErrArgument)
	case s.core.cards == cardsAlone:
		return fmt.Errorf("%w: the window was made with CardAtomics, and cards whose atomics are none for processors", errors.ErrUnsupported)
	}
	return nil
}

// seats are the seats of a window's clients.
type seats struct {
	mu sync.Mutex
	// guests is indexed by seat, with nil for a free one. serving counts the running calls of Serve.
	guests  []*guest
	serving int
	// closing is set when the window is closed or about to be, over when its memory is about to be freed.
	closing, over bool
}

// hold keeps the window from being closed until letGo. It returns false if the window is about to be closed.
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

// close keeps the window from being served. It returns false if the window is served now. open undoes close. The
// callers hold the mutex of epochs, so that no other Close comes between the two.
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

// take gives a guest a free seat.
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

// revoke ends all accesses of guests to the memory, which is about to be freed.
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

// A guest is the server's end of a client's window.
type guest struct {
	session *job.Session
	name    string
	host    *core
	seat    int
	core    *core
	// stopLeaving removes the function that runs when the World of the session is closed.
	stopLeaving func()

	// mu is held while the guest is made, and while its locks on the host are given back.
	mu sync.Mutex
	// data is the memory as the client reaches it, or nil once the client no longer does. over is set when the guest
	// has left, or when the host's memory may be freed.
	data *job.Region
	over bool
	// blocks is the time since which a rank or client is known to wait for the lock that the guest holds, or zero.
	// grants is the number of that lock.
	blocks time.Time
	grants uint64
}

// lodge makes this window a guest of another, whose part it uses.
func (c *core) lodge(host *core) {
	c.host, c.native, c.lockWord = host, host.native, host.lockWord
	c.own.control, c.own.data = host.own.control, host.own.data
	c.raceOrder.orderedAs(&host.raceOrder)
}

// newGuest makes the server's end of a window that a client attaches to.
func newGuest(session *job.Session, number uint32, served Served) (g *guest, offered description, err error) {
	w, host := session.World(), served.core
	g = &guest{session: session, name: served.name, host: host}
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := host.seats.take(g, host.hints.Seats); err != nil {
		return nil, offered, err
	}
	s := host.hints
	s.Seats, s.ReadOnly = 0, served.readOnly
	access := windowAccess
	if s.ReadOnly {
		access = verbs.RemoteRead
	}
	// The client does not learn of the control block. The guest uses that of its host, and its own one only for its
	// barrier.
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
	// When the World of the session is closed, the client's last messages have arrived. abandon, which is registered
	// earlier, closes the guest's window. Then leave runs, and Close of the World waits for it.
	g.stopLeaving = w.OnClose(g.leave)
	g.core.open([]description{offered, emptyPart()}, reachMapped, false)
	return g, offered, nil
}

// emptyPart returns the description of a part without memory.
func emptyPart() description { return description{alignment: 1} }

// withdraw ends the client's access to the memory. The caller holds mu.
func (g *guest) withdraw() error {
	data := g.data
	g.data = nil
	if data == nil {
		return nil
	}
	return data.Deregister()
}

// revoke ends the guest's accesses to the host's memory, and the session, in which the client may wait for a reply.
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

// detach ends the guest after its client has closed the window.
func (g *guest) detach() error {
	g.stopLeaving()
	g.core.shut()
	g.core.withdraw()
	err := g.core.release()
	return errors.Join(g.leave(), err)
}

// leave gives back the client's locks and frees the seat. No further message of the client can arrive.
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

// show returns the Seat of the guest.
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

// blocking reports whether a live rank, or another client, waits for the lock that the guest holds. The caller holds
// mu.
func (g *guest) blocking() bool {
	held, host := g.core.server.held.Load(), g.host
	control := &host.own.control
	if held&(1<<Shared) != 0 && host.livingHolder(control.exclusive().Load()) {
		return true
	}
	return held&(1<<Exclusive) != 0 && (control.wishes().Load() != 0 || host.waitedFor())
}

// blocked returns how long a rank or client has waited for the lock that the guest holds. The time begins with the
// first call of blocked that finds the wait.
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
