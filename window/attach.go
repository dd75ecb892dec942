package window

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/onesided/rma/aggregate/reduce"
	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/scheduler"
	"github.com/onesided/rma/world"
)

// Attach returns a window that another process serves under a name (see [Serve]). w is a World of world.Dial. The
// window has memory on rank 0 only. This rank, 1, has none. Close concerns this rank alone.
//
// The window has all operations, between Lock or LockAll and Unlock or UnlockAll. Fence, Start, Complete, Post, Wait,
// Test, WaitNotify and TestNotify return an [ErrAttached], and so does a lock of rank 1. If the window is served
// read-only, calls that write return an [ErrReadOnly], and so do exclusive locks. Promises such as [SingleElement] are
// those with which the window was made.
//
// Attach returns an [ErrNotServed] if the name is not served or T is not the element type of the window. It returns an
// [ErrNoSeat] if the window or this session has no free seat. When the server ends, calls return a *world.PeerError of
// rank 0. If the server evicts this client, the cause is a world.ErrEvicted that has the reason: see [Limits].
//
// If ctx ends first, another Attach with the same name and element type continues. Without one, a seat that the server
// grants meanwhile is given back as soon as this process learns of it. That happens in other calls, or in Close of the
// World.
//
// When Close of the World has returned, its seats are free. Close of a window alone notifies the server: the seat is
// free for the next Attach of this World, and soon for other clients.
func Attach[T Element](ctx context.Context, w *world.World, name string) (*Window[T], error) {
	if err := checkContext(ctx, "Attach"); err != nil {
		return nil, err
	}
	if w == nil {
		return nil, fmt.Errorf("window: Attach: %w: nil World", ErrArgument)
	}
	j := jobOf(w)
	if !j.Dialed() {
		return nil, fmt.Errorf("window: Attach: %w: the World is not of world.Dial, which a client calls", ErrArgument)
	}
	if name == "" || len(name) > mostName {
		return nil, fmt.Errorf("window: Attach: %w: a name of %s, allowed are 1 to %d", ErrArgument, errtext.Count(len(name), "byte"), mostName)
	}
	begun, number := j.BeginSpan(), uint32(0)
	defer func() { j.EndSpanOf(number, "Attach", begun) }()
	v := j.Attached(visitorKey{}, func() any { return newVisitor(j) }).(*visitor)
	c, err := v.attach(ctx, name, reduce.KindOf[T]())
	if err != nil {
		return nil, errtext.Errorf("window: Attach %q: %w", name, err)
	}
	c.face, number = w, c.number
	return windowOver[T](c), nil
}

// checkJob rejects a call that needs calls of other ranks, if the window was attached to.
func (c *core) checkJob(call string) error {
	if c.visited != nil {
		return fmt.Errorf("window: %s: %w", call, ErrAttached)
	}
	return nil
}

// A visitor is the client's end of a session.
type visitor struct {
	world  *job.World
	number uint32

	mu      sync.Mutex
	tickets uint64
	// asked has the requests without a response, by ticket.
	asked map[uint64]*inquiry
}

// An inquiry is a request for a window. The call that made it waits for the response, or gives up, which the mutex of
// the visitor guards. A call that makes the same request continues the inquiry.
type inquiry struct {
	request  []byte
	answered atomic.Bool
	number   uint64
	// If number is 0, refusal and detail are the reason of the rejection in terms of the protocol, or text is.
	// Otherwise text is the offer.
	refusal uint8
	detail  uint64
	text    []byte
	givenUp bool
}

type visitorKey struct{}

func newVisitor(w *job.World) *visitor {
	v := &visitor{world: w, number: w.NewNumber(), asked: make(map[uint64]*inquiry)}
	w.Serve(v.number, v)
	return v
}

// Serve takes responses. It is called in progress.
func (v *visitor) Serve(from *job.Link, m *job.Message, payload []byte) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	a := v.asked[m.X]
	if m.Kind != messageAttached || a == nil || m.Y > 1<<32-1 {
		return fmt.Errorf("window: a message of kind %d for request %d, which was not made", m.Kind, m.X)
	}
	delete(v.asked, m.X)
	if a.givenUp {
		if m.Y != 0 {
			from.Reply(&job.Message{Kind: messageDetach, Service: v.number, X: m.Y}, nil)
		}
		return nil
	}
	a.number, a.refusal, a.detail, a.text = m.Y, m.A, m.Z, append([]byte(nil), payload...)
	a.answered.Store(true)
	return nil
}

// attach requests a window, and makes this rank's end of it.
func (v *visitor) attach(ctx context.Context, name string, kind reduce.Kind) (*core, error) {
	a, err := v.inquire(ctx, encodeRequest(kind, name))
	switch {
	case err != nil:
		return nil, err
	case a.number == 0:
		return nil, a.refused(kind)
	}
	c, err := v.settle(uint32(a.number), a.text, kind)
	if err != nil {
		v.detach(uint32(a.number))
	}
	return c, err
}

// refused returns the error of a rejected request. The values come from the server and may be anything.
func (a *inquiry) refused(kind reduce.Kind) error {
	switch {
	case a.refusal == refusedName:
		return fmt.Errorf("%w is served under that name", ErrNotServed)
	case a.refusal == refusedKind && a.detail < uint64(reduce.Kinds):
		return fmt.Errorf("%w of %v: its elements are of %v", ErrNotServed, kind, reduce.Kind(a.detail))
	case a.refusal == refusedSeats && a.detail <= MaxSeats:
		is := "are"
		if a.detail == 1 {
			is = "is"
		}
		return fmt.Errorf("%w: there %s %d (option Seats)", ErrNoSeat, is, a.detail)
	case a.refusal == refusedShare && a.detail <= MaxSeats:
		return fmt.Errorf("%w: this session has %d of them, and may have no more (Limits.SeatsPerSession)", ErrNoSeat, a.detail)
	case a.refusal == refusedClosed:
		return fmt.Errorf("%w: it is closed", ErrNotServed)
	}
	return &job.RejectionError{Rank: 0, Text: fmt.Sprintf("%.512q", a.text)}
}

// settle makes this rank's end of an offered window.
func (v *visitor) settle(number uint32, text []byte, kind reduce.Kind) (*core, error) {
	s, theirs, err := parseOffer(text)
	if err == nil {
		err = theirs.check(kind)
	}
	if err == nil && number <= v.number {
		err = fmt.Errorf("%w: window %d", errDescription, number)
	}
	if err != nil {
		return nil, err
	}
	s.Scheme = scheduler.All &^ v.world.Tuning().NoSchemes
	var p part
	if err := p.addControl(v.world, s); err != nil {
		return nil, err
	}
	c, err := newCore(v.world, number, s, &p, false)
	if err != nil {
		_ = p.release()
		return nil, err
	}
	c.visited = v
	c.open([]description{theirs, emptyPart()}, reachMapped, false)
	return c, nil
}

// inquire requests a window and waits for the response.
func (v *visitor) inquire(ctx context.Context, request []byte) (*inquiry, error) {
	if a := v.goOn(request); a != nil {
		// What was rejected long ago may be available now.
		if err := v.await(ctx, a); err != nil || a.number != 0 {
			return a, err
		}
	}
	a, err := v.ask(ctx, request)
	if err != nil {
		return nil, err
	}
	return a, v.await(ctx, a)
}

// goOn resumes a request that was given up and has no response yet. It returns nil if there is none.
func (v *visitor) goOn(request []byte) *inquiry {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, a := range v.asked {
		if a.givenUp && bytes.Equal(a.request, request) {
			a.givenUp = false
			return a
		}
	}
	return nil
}

// ask sends a request for a window.
func (v *visitor) ask(ctx context.Context, request []byte) (*inquiry, error) {
	link, err := v.world.Link(0)
	if err != nil {
		return nil, err
	}
	a := &inquiry{request: request}
	v.mu.Lock()
	v.tickets++
	ticket := v.tickets
	v.asked[ticket] = a
	v.mu.Unlock()
	if err := link.TellWithin(ctx, &job.Message{Kind: messageAttach, Service: v.number, X: ticket}, request); err != nil {
		v.mu.Lock()
		delete(v.asked, ticket)
		v.mu.Unlock()
		return nil, err
	}
	link.Post()
	return a, nil
}

// await waits for the response to a request.
func (v *visitor) await(ctx context.Context, a *inquiry) error {
	wait := v.world.NewWaiter()
	defer wait.Finish()
	wait.For(0)
	for !a.answered.Load() {
		err := wait.Lost("window.Attach", 0)
		if err == nil {
			err = wait.Pause(ctx)
		}
		if err != nil && v.giveUp(a) {
			return err
		}
	}
	return nil
}

// giveUp gives up a request, unless its response has arrived, and reports whether it gave up.
func (v *visitor) giveUp(a *inquiry) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	a.givenUp = !a.answered.Load()
	return a.givenUp
}

// leave closes the client's end of a window.
func (v *visitor) leave(c *core) error {
	c.withdraw()
	err := c.release()
	if v.world.Failure(0) == nil {
		v.detach(c.number)
	}
	return err
}

// detach notifies the server that a window is closed here. If the server has ended it needs no notification.
func (v *visitor) detach(number uint32) {
	link, err := v.world.Link(0)
	if err == nil {
		_ = link.Tell(&job.Message{Kind: messageDetach, Service: v.number, X: uint64(number)}, nil)
		link.Post()
	}
}
