package window

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/onesided/rma/aggregate/reduce"
	"github.com/onesided/rma/world"
)

// client is the rank of a client in its session, whose other rank is 0.
const client = 1

// An attendant attends to a client: it attaches it to windows, and ends what it leaves behind.
type attendant struct {
	session *world.Session
	windows map[string]Served
	// requests are those that have come, of which there are at most mostRequests at once.
	requests chan request
	guests   map[uint32]*guest
}

// mostRequests bounds how many a client has made that are not answered.
const mostRequests = 64

// A request asks for a window, or, of number, says that the client has closed that.
type request struct {
	ticket uint64
	number uint32
	text   []byte
}

func newAttendant(session *world.Session, windows map[string]Served) *attendant {
	return &attendant{session: session, windows: windows, requests: make(chan request, mostRequests), guests: make(map[uint32]*guest)}
}

// Serve takes requests. It is called in progress.
func (a *attendant) Serve(_ *world.Link, m *world.Message, payload []byte) error {
	r := request{ticket: m.X}
	switch m.Kind {
	case messageAttach:
		if len(payload) > requestHead+MostName {
			return fmt.Errorf("window: a request of %d bytes, allowed are %d", len(payload), requestHead+MostName)
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

// run attends to the client until it has left.
func (a *attendant) run(ctx context.Context) {
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
		case r := <-a.requests:
			if r.number != 0 {
				a.detach(r.number)
			} else {
				a.attach(ctx, number, r)
			}
		case <-a.session.Left():
			here = false
		default:
			// Another error is what this rank is short of, which it need not be next time.
			if err := wait.Pause(ctx); err != nil && ctx.Err() != nil {
				a.session.EndInOrder(errStopped)
				here = false
			}
		}
	}
	wait.Finish()
	stop()
	// It closes the windows, and gives the seats free.
	_ = w.Close()
}

// attach answers a request.
func (a *attendant) attach(ctx context.Context, service uint32, r request) {
	answer := world.Message{Kind: messageAttached, Service: service, X: r.ticket}
	offer, err := a.guest(&r, &answer)
	if err != nil {
		offer = []byte(err.Error())
	}
	link, err := a.session.World().Link(client)
	if err == nil {
		// An error is the client's end, which is known as such.
		_ = link.TellWithin(ctx, &answer, offer)
		link.Post()
	}
}

// guest makes the guest that a request is for, and its offer, and completes the answer.
func (a *attendant) guest(r *request, answer *world.Message) (offer []byte, err error) {
	kind, name, err := parseRequest(r.text)
	if err != nil {
		return nil, err
	}
	s, there := a.windows[name]
	switch {
	case !there:
		answer.A = refusedName
		return nil, ErrName
	case s.kind != kind:
		answer.A, answer.Z = refusedKind, uint64(s.kind)
		return nil, fmt.Errorf("%w of %v", ErrName, kind)
	}
	number := a.session.World().NewNumber()
	g, d, err := newGuest(a.session, number, s.core)
	switch {
	case errors.Is(err, ErrSeats):
		answer.A, answer.Z = refusedSeats, uint64(s.core.hints.seats)
		return nil, err
	case errors.Is(err, errClosed):
		answer.A = refusedClosed
		return nil, err
	case err != nil:
		return nil, err
	}
	answer.Y = uint64(number)
	a.guests[number] = g
	return s.core.offer(&d), nil
}

// detach ends the guest of a window that the client has closed.
func (a *attendant) detach(number uint32) {
	if g := a.guests[number]; g != nil {
		delete(a.guests, number)
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
	Data            world.Places
}

func (c *core) offer(d *description) []byte {
	text, _ := binary.Append(nil, binary.LittleEndian, &offer{uint32(c.hints.bits()), uint32(c.hints.slots), d.bytes, d.alignment, d.data}) // all fixed sizes
	return text
}

// parseOffer gives what a client is offered as the settings of its window and the description of
// rank 0's part. What that describes is not checked.
func parseOffer(text []byte) (s settings, d description, err error) {
	var o offer
	if n, err := binary.Decode(text, binary.LittleEndian, &o); err != nil || n != len(text) {
		return s, d, fmt.Errorf("%w: an offer of %d bytes", ErrDescription, len(text))
	}
	if o.Slots > MaxNotifications || o.Promises >= 1<<len(promiseNames) {
		return s, d, fmt.Errorf("%w: an offer of %d notification slots and promises %#x", ErrDescription, o.Slots, o.Promises)
	}
	p := promises(o.Promises)
	s = settings{
		slots: int(o.Slots), singleElement: p&hintSingleElement != 0, sameOp: p&hintSameOp != 0,
		unordered: p&hintUnordered != 0, immediate: p&hintImmediate != 0, cardAtomics: p&hintCardAtomics != 0,
	}
	return s, description{bytes: o.Bytes, alignment: o.Alignment, data: o.Data}, nil
}
