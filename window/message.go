package window

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/onesided/rma/aggregate/reduce"
	"github.com/onesided/rma/world"
)

// The kinds of messages between ranks that map no memory of each other, all to the
// service that has the window's number. X is an offset in the target's part, in
// bytes, where nothing else is said. What is asked for is what is answered.
const (
	// messagePut writes the payload; messageGet asks for Y bytes.
	messagePut = world.FirstKind + iota
	messageGet
	// messageAccumulate combines the payload, elements of kind B, by operation A;
	// messageFetch also asks for what Y elements were before.
	messageAccumulate
	messageFetch
	// messageSwap is CompareAndSwap: the payload is what to compare with and what
	// to set, of kind B.
	messageSwap
	// messageNotify adds 1 to notification slot X.
	messageNotify
	// messageWord sets the sender's word A of the target's control block to X.
	messageWord
	// messageLock asks for a lock of kind A, with ticket X; messageGranted says
	// that the sender has it; messageUnlock gives it back, or takes the wish back.
	messageLock
	messageGranted
	messageUnlock
)

// A server serves the messages of other ranks to this rank's part of a window. It
// checks what they ask as if everyone could have sent it.
type server struct {
	core *core
	// views are the part as elements of each kind that was asked for.
	views [reduce.Kinds]*view
	// scratch is where answers are made.
	scratch []uint64
	// wishes are locks that could not be granted at once, one of a rank at most;
	// retrying tells that they are tried again.
	wishes   []*wish
	retrying bool
	// ended tells that the memory may be gone.
	ended atomic.Bool
	stop  func()
}

// end has no messages served, nor wishes granted, once it has returned.
func (s *server) end() {
	s.ended.Store(true)
	s.stop()
}

func newServer(c *core) *server {
	s := &server{core: c}
	s.stop = c.world.Serve(c.number, s)
	return s
}

// errOutside is a request outside of a window.
var errOutside = errors.New("outside of the window")

// Serve does what a message asks.
func (s *server) Serve(from *world.Link, m *world.Message, payload []byte) error {
	err := s.serve(from, m, payload)
	if err != nil {
		err = fmt.Errorf("window: message of kind %d: %w", m.Kind, err)
		switch m.Kind {
		case messageGet, messageFetch, messageSwap:
			from.Refuse(err)
			return nil
		}
	}
	return err
}

func (s *server) serve(from *world.Link, m *world.Message, payload []byte) error {
	c := s.core
	switch m.Kind {
	case messagePut:
		to, err := s.part(m.X, uint64(len(payload)))
		if err == nil {
			copy(to, payload)
		}
		return err
	case messageGet:
		if m.Y > uint64(from.MaxPayload()) {
			return fmt.Errorf("%d bytes, at most %d are allowed", m.Y, from.MaxPayload())
		}
		memory, err := s.part(m.X, m.Y)
		if err == nil {
			from.Answer(memory)
		}
		return err
	case messageAccumulate, messageFetch:
		return s.accumulate(from, m, payload)
	case messageSwap:
		return s.swap(from, m, payload)
	case messageNotify:
		if m.X >= uint64(c.hints.slots) {
			return fmt.Errorf("notification slot %d, there are %d", m.X, c.hints.slots)
		}
		c.own.control.slot(int(m.X)).Add(1)
	case messageWord:
		if m.A != postAt && m.A != completeAt || m.X > 1<<32-1 {
			return fmt.Errorf("word %d := %d", m.A, m.X)
		}
		c.own.control.pair(from.Rank(), uintptr(m.A)).Store(uint32(m.X))
	case messageLock:
		return s.lock(from, m)
	case messageUnlock:
		return s.unlock(from, m)
	case messageGranted:
		c.granted[from.Rank()].Store(uint32(m.X))
	default:
		return errors.New("there is no such kind")
	}
	return nil
}

// part is n bytes of this rank's part.
func (s *server) part(offset, n uint64) ([]byte, error) {
	data := s.core.own.data
	if size := uint64(len(data)); offset > size || n > size-offset {
		return nil, fmt.Errorf("%d bytes at offset %d: %w, which has %d", n, offset, errOutside, size)
	}
	return data[offset:][:n:n], nil
}

// view is the part as elements of the kind that a message names, and the memory of n
// of them at its offset.
func (s *server) view(m *world.Message, n uint64) (*view, []byte, error) {
	kind := reduce.Kind(m.B)
	if !kind.Valid() {
		return nil, nil, fmt.Errorf("no kind %d of elements", m.B)
	}
	v := s.views[kind]
	if v == nil {
		v = viewOf(s.core, kind)
		s.views[kind] = v
	}
	size := uint64(kind.Size())
	if n > 1<<32 {
		return nil, nil, fmt.Errorf("%d elements", n)
	}
	memory, err := s.part(m.X, n*size)
	if err != nil {
		return nil, nil, err
	}
	if m.X%size != 0 || n > 0 && alignmentOf(memory) < min(kind.Size(), 8) {
		return nil, nil, fmt.Errorf("%w: elements of %d bytes at offset %d", ErrAlignment, size, m.X)
	}
	return v, memory, nil
}

// answer is n bytes on an 8-byte boundary.
func (s *server) answer(n int) []byte {
	if 8*len(s.scratch) < n {
		s.scratch = make([]uint64, (n+7)/8)
	}
	return bytesOf(s.scratch)[:n]
}

func (s *server) accumulate(from *world.Link, m *world.Message, payload []byte) error {
	kind := reduce.Kind(m.B)
	if !kind.Valid() {
		return fmt.Errorf("no kind %d of elements", m.B)
	}
	n := uint64(len(payload)) / uint64(kind.Size())
	if m.Kind == messageFetch {
		n = m.Y
	}
	if m.Kind == messageFetch && n > uint64(from.MaxPayload()/kind.Size()) {
		return fmt.Errorf("%d elements, at most %d are allowed", n, from.MaxPayload()/kind.Size())
	}
	v, memory, err := s.view(m, n)
	if err != nil {
		return err
	}
	op := Op(m.A)
	if err := reduce.Supported(kind, op); err != nil {
		return err
	}
	if uint64(len(payload)) != n*uint64(kind.Size()) && (op != NoOp || len(payload) != 0) {
		return fmt.Errorf("%d bytes of operands for %d elements of %d", len(payload), n, kind.Size())
	}
	var old []byte
	if m.Kind == messageFetch {
		old = s.answer(len(memory))
	}
	if u := (unapplied{v, op, memory, payload, old, m.X}); n > 0 && !u.apply() {
		s.later(from, u, old)
		return nil
	}
	if m.Kind == messageFetch {
		from.Answer(old)
	}
	return nil
}

func (s *server) swap(from *world.Link, m *world.Message, payload []byte) error {
	v, memory, err := s.view(m, 1)
	if err != nil {
		return err
	}
	size := len(memory)
	if len(payload) != 2*size {
		return fmt.Errorf("%d bytes of operands for a swap of %d", len(payload), size)
	}
	old := s.answer(size)
	if !v.swapServed(memory, payload[:size], payload[size:], old, m.X) {
		s.swapLater(from, v, memory, payload, m.X)
		return nil
	}
	from.Answer(old)
	return nil
}

// putRemote writes to a rank over its link.
func (v *view) putRemote(p *peer, origin []byte, offset uint64) error {
	if p.direct {
		return p.link.Write(origin, p.region, offset)
	}
	for len(origin) > 0 {
		n := min(len(origin), p.link.MaxPayload())
		if err := p.link.Tell(&world.Message{Kind: messagePut, Service: v.number, X: offset}, origin[:n]); err != nil {
			return err
		}
		origin, offset = origin[n:], offset+uint64(n)
	}
	return nil
}

func (v *view) getRemote(p *peer, result []byte, offset uint64) error {
	if p.direct {
		return p.link.Read(result, p.region, offset)
	}
	for len(result) > 0 {
		n := min(len(result), p.link.MaxPayload())
		if err := p.link.Ask(&world.Message{Kind: messageGet, Service: v.number, X: offset, Y: uint64(n)}, nil, result[:n]); err != nil {
			return err
		}
		result, offset = result[n:], offset+uint64(n)
	}
	return nil
}

func (c *core) notifyRemote(p *peer, slot int) error {
	if err := p.link.Tell(&world.Message{Kind: messageNotify, Service: c.number, X: uint64(slot)}, nil); err != nil {
		return err
	}
	p.link.Post()
	return nil
}
