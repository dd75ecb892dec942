package window

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/onesided/rma/aggregate/reduce"
	"github.com/onesided/rma/internal/job"
)

// client is the rank of a client in its session. The other rank is 0.
const client = 1

// An attendant is the server's end of a client's session. It attaches the client to windows, and ends what the client
// leaves open.
type attendant struct {
	session *job.Session
	id      uint64
	limits  *Limits
	windows map[string]Served
	// ctx ends when the client is to be sent away: by evict, or because nothing is served any more.
	ctx   context.Context
	evict context.CancelCauseFunc
	// ended is closed when nothing of the session remains, and its Server no longer lists it.
	ended chan struct{}
	// seated is set once the client has had a seat.
	seated atomic.Bool
	// requests has the requests that have arrived, at most mostRequests at once.
	requests chan request

	// mu guards guests for those that look at the session.
	mu     sync.Mutex
	guests map[uint32]*guest
}

// mostRequests bounds how many a client has made that are not answered.
const mostRequests = 64

// A request asks for a window, or, of number, says that the client has closed that.
type request struct {
	ticket uint64
	number uint32
	text   []byte
}

func newAttendant(ctx context.Context, session *job.Session, windows map[string]Served, limits *Limits) *attendant {
	a := &attendant{
		session: session, limits: limits, windows: windows, ended: make(chan struct{}),
		requests: make(chan request, mostRequests), guests: make(map[uint32]*guest),
	}
	a.ctx, a.evict = context.WithCancelCause(ctx)
	return a
}

// Serve takes requests. It is called in progress.
func (a *attendant) Serve(_ *job.Link, m *job.Message, payload []byte) error {
	r := request{ticket: m.X}
	switch m.Kind {
	case messageAttach:
		if len(payload) > requestHead+mostName {
			return fmt.Errorf("window: a request of %d bytes, allowed are %d", len(payload), requestHead+mostName)
		}
		r.text = bytes.Clone(payload)
	case messageDetach:
		if m.X == 0 || m.X > 1<<32-1 {
			return fmt.Errorf("window: closing of window %d, there is none", m.X)
		}
		r.number = uint32(m.X)
	default:
		return fmt.Errorf("window: there is no message of kind %d of a client", m.Kind)
	}
	select {
	case a.requests <- r:
		return nil
	default:
		return fmt.Errorf("window: more than %d requests at once", mostRequests)
	}
}

// errStopped is why clients are gone when Serve ends.
var errStopped = errors.New("window: the windows are not served any more")

// run attends to the client until it has left, or is sent away. ctx is that of Serve.
func (a *attendant) run(ctx context.Context) {
	defer a.evict(nil)
	w := a.session.World()
	number := w.NewNumber()
	stop := w.Serve(number, a)
	// That its client has ended already is heard of below.
	_ = a.session.Begin()
	// Who waits in the World looks for what the client sends, so that no other thread has to be
	// woken for it.
	wait := w.NewWaiter()
	for here := true; here; {
		select {
		case <-a.ctx.Done():
			a.sendAway(ctx)
			here = false
		case <-a.session.Left():
			here = false
		case r := <-a.requests:
			if r.number != 0 {
				a.detach(r.number)
			} else {
				a.attach(number, r)
			}
		default:
			// An error is what this rank is short of, which it need not be next time, or the end of the context.
			_ = wait.Pause(a.ctx)
		}
	}
	wait.Finish()
	stop()
	// It closes the windows, and gives the seats free.
	_ = w.CloseOwn(context.Background())
}

// sendAway ends the session.
func (a *attendant) sendAway(ctx context.Context) {
	if ctx.Err() != nil {
		a.session.EndInOrder(errStopped)
	} else {
		a.session.Evict(context.Cause(a.ctx))
	}
}

// exceeded is the bound that the session has reached, nil if it has not.
func (a *attendant) exceeded(now time.Time) error {
	if !a.seated.Load() {
		if limit := a.limits.AttachTime; over(now.Sub(a.session.Since()), limit) {
			return fmt.Errorf("window: the session took no seat within %v (Limits.AttachTime)", limit)
		}
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	waits := false
	for _, g := range a.guests {
		if limit := a.limits.LockTime; over(g.blocked(now), limit) {
			return fmt.Errorf("window: the session held a lock of %q for %v while others waited (Limits.LockTime)", g.name, limit)
		}
		waits = waits || g.core.server.waits.Load() > 0
	}
	if limit := a.limits.IdleTime; !waits && over(now.Sub(a.session.Active()), limit) {
		return fmt.Errorf("window: the session issued no operation for %v (Limits.IdleTime)", limit)
	}
	return nil
}

// show is the session as others see it.
func (a *attendant) show() Session {
	s := Session{ID: a.id, Address: a.session.RemoteAddr(), Certificate: a.session.Certificate(), Since: a.session.Since(), Active: a.session.Active()}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, number := range slices.Sorted(maps.Keys(a.guests)) {
		s.Seats = append(s.Seats, a.guests[number].show())
	}
	return s
}

// attach answers a request.
func (a *attendant) attach(service uint32, r request) {
	answer := job.Message{Kind: messageAttached, Service: service, X: r.ticket}
	offer, err := a.guest(&r, &answer)
	if err != nil {
		offer = []byte(err.Error())
	}
	link, err := a.session.World().Link(client)
	if err == nil {
		// An error is the client's end, which is known as such.
		_ = link.TellWithin(a.ctx, &answer, offer)
		link.Post()
	}
}

// seatsOf counts the seats of a window that the session has.
func (a *attendant) seatsOf(c *core) (n int) {
	for _, g := range a.guests {
		if g.host == c {
			n++
		}
	}
	return n
}

// guest makes the guest that a request is for, and its offer, and completes the answer.
func (a *attendant) guest(r *request, answer *job.Message) (offer []byte, err error) {
	kind, name, err := parseRequest(r.text)
	if err != nil {
		return nil, err
	}
	s, there := a.windows[name]
	switch {
	case !there:
		answer.A = refusedName
		return nil, ErrNotServed
	case s.kind != kind:
		answer.A, answer.Z = refusedKind, uint64(s.kind)
		return nil, fmt.Errorf("%w of %v", ErrNotServed, kind)
	}
	if a.seatsOf(s.core) >= a.limits.SeatsPerSession {
		answer.A, answer.Z = refusedShare, uint64(a.limits.SeatsPerSession)
		return nil, ErrNoSeat
	}
	number := a.session.World().NewNumber()
	g, d, err := newGuest(a.session, number, s)
	switch {
	case errors.Is(err, ErrNoSeat):
		answer.A, answer.Z = refusedSeats, uint64(s.core.hints.Seats)
		return nil, err
	case errors.Is(err, ErrClosed):
		answer.A = refusedClosed
		return nil, err
	case err != nil:
		return nil, err
	}
	answer.Y = uint64(number)
	a.mu.Lock()
	a.guests[number] = g
	a.mu.Unlock()
	a.seated.Store(true)
	return g.core.offer(&d), nil
}

// detach ends the guest of a window that the client has closed.
func (a *attendant) detach(number uint32) {
	a.mu.Lock()
	g := a.guests[number]
	delete(a.guests, number)
	a.mu.Unlock()
	if g != nil {
		_ = g.detach()
	}
}

// requestHead is the length of what is in a request before the name: the element kind.
const requestHead = 4

func encodeRequest(kind reduce.Kind, name string) []byte {
	return append(binary.LittleEndian.AppendUint32(nil, uint32(kind)), name...)
}

func parseRequest(text []byte) (kind reduce.Kind, name string, err error) {
	if len(text) <= requestHead {
		return 0, "", fmt.Errorf("a request of %d bytes", len(text))
	}
	number := binary.LittleEndian.Uint32(text)
	if number >= uint32(reduce.Kinds) {
		return 0, "", fmt.Errorf("element kind %d, there are %d", number, reduce.Kinds)
	}
	return reduce.Kind(number), string(text[requestHead:]), nil
}

// An offer tells a client of a window, with little-endian numbers.
type offer struct {
	Promises, Slots uint32
	Bytes           uint64
	Alignment       uint32
	Data            job.Places
}

// offeredReadOnly is beside the promises of a window that clients only read.
const offeredReadOnly = 1 << 31

func (c *core) offer(d *description) []byte {
	promised := uint32(promisesOf(&c.hints))
	if c.hints.ReadOnly {
		promised |= offeredReadOnly
	}
	text, _ := binary.Append(nil, binary.LittleEndian, &offer{promised, uint32(c.hints.Slots), d.bytes, d.alignment, d.data}) // all fixed sizes
	return text
}

// parseOffer gives what a client is offered as the settings of its window and the description of
// rank 0's part. What that describes is not checked.
func parseOffer(text []byte) (s settings, d description, err error) {
	var o offer
	if n, err := binary.Decode(text, binary.LittleEndian, &o); err != nil || n != len(text) {
		return s, d, fmt.Errorf("%w: an offer of %d bytes", errDescription, len(text))
	}
	readOnly := o.Promises&offeredReadOnly != 0
	o.Promises &^= offeredReadOnly
	if o.Slots > maxNotifications || o.Promises >= 1<<len(promiseNames) {
		return s, d, fmt.Errorf("%w: an offer of %d notification slots and promises %#x", errDescription, o.Slots, o.Promises)
	}
	s = promises(o.Promises).settings()
	s.Slots, s.ReadOnly = int(o.Slots), readOnly
	return s, description{bytes: o.Bytes, alignment: o.Alignment, data: o.Data}, nil
}
