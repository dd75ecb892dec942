package window

import (
	"fmt"
	"sync/atomic"

	"github.com/onesided/rma/aggregate/reduce"
	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/internal/job"
)

// The kinds of messages between ranks that map no memory of each other, all to the
// service that has the window's number.
const (
	// messagePacket is a packet of operations: see aggregate. Its answer is that of the
	// packet. X is the last Fence that the sender has ended: the packet is put off until
	// this rank has.
	messagePacket = job.FirstKind + iota
	// messageGate is answered when this rank has ended Fence X. messageMark says that all
	// that the sender has sent before Fence X has come.
	messageGate
	messageMark
	// messageWord sets the sender's word A of the target's control block to X, or marks there that the sender has closed
	// the window.
	messageWord
	// messageLock asks for a lock of kind A, with ticket X, and to carry out a packet, if it
	// has one, under it; Y is the last Fence that the sender has ended. If B is lockOnce it is
	// given back then. messageUnlock gives a lock back, or takes the wish back.
	messageLock
	messageUnlock
	// messageComplete is the end of an epoch of Start, Complete Z of the sender: its packet is
	// carried out when this rank has posted, and the word set. If X is not 0 it is a ticket,
	// which is granted then, with the answer. Y is as of messageLock.
	messageComplete
	// messageAttach, of a client to the process that serves it, asks for the window that its
	// payload names: see request. X is the number of the request. messageAttached answers it:
	// Y is the number that the window has in messages from now on, with its offer, or 0, where A
	// is why there is none, with what Z tells of that, and a text. messageDetach says that the
	// client has closed window X.
	messageAttach
	messageAttached
	messageDetach
	// messagePlace asks where this rank has made its last collective call of the window.
	messagePlace
)

// Why there is no window: only the text tells, there is none of that name, Z is the kind of its elements,
// its Z seats are all taken, it is closed, the session has Z seats and gets no more.
const (
	refusedText uint8 = iota
	refusedName
	refusedKind
	refusedSeats
	refusedClosed
	refusedShare
)

// messageGranted says that a lock with ticket X is granted, with the answer to the packet that
// came with its messageLock or messageComplete. It waits for no Fence of the rank that it goes
// to, which may be in one that others come to only when this has been heard.
const messageGranted = job.FirstOvertaking

// lockOnce is a lock for what rides with it alone.
const lockOnce = 1

// A server serves the messages of other ranks to this rank's part of a window. It
// checks what they ask as if everyone could have sent it.
type server struct {
	core *core
	// views are the part as elements of each kind that was asked for.
	views [reduce.Kinds]*view
	// scratch is where answers are made.
	scratch []uint64
	// wishes are locks that could not be granted at once, one of a rank at most, and epochs
	// that are being completed; retrying tells that they are tried again.
	wishes   []*wish
	retrying bool
	tryAgain func() bool
	// early are epochs that wait for a post of this rank, one of a rank at most; waiting
	// tells that there are some.
	early   []*wish
	waiting atomic.Bool
	// delays are messages of each rank that wait for a Fence.
	delays []*delay
	// spare are wishes that are not in use.
	spare []*wish
	// Of a guest's held has the bit of each kind of lock that it holds, and grants counts those that it was granted.
	held   atomic.Uint32
	grants atomic.Uint64
	// waits is how many of the wishes are locks that are not granted, claimed how many of those the control block tells of: one
	// that has the exclusive word, and waits for shared holders, is not among them.
	waits, claimed atomic.Int32
	// ended tells that the memory may be gone.
	ended atomic.Bool
	stop  func()
}

// end has no messages served, nor wishes granted, once it has returned.
func (s *server) end() {
	s.ended.Store(true)
	s.stop()
	s.waits.Store(0)
	s.show(0)
}

func newServer(c *core) *server {
	s := &server{core: c, delays: make([]*delay, c.size)}
	s.tryAgain = func() bool {
		s.grantWishes()
		s.retrying = len(s.wishes) > 0
		return !s.retrying
	}
	s.stop = c.world.Serve(c.number, s)
	return s
}

// Serve does what a message asks.
func (s *server) Serve(from *job.Link, m *job.Message, payload []byte) error {
	if err := s.serve(from, m, payload); err != nil {
		return errtext.Errorf("window: %w", err)
	}
	return nil
}

func (s *server) serve(from *job.Link, m *job.Message, payload []byte) error {
	c := s.core
	if c.host != c && m.Kind != messagePacket && m.Kind != messageLock && m.Kind != messageUnlock {
		return fmt.Errorf("a message of kind %d of a client, which has locks only", m.Kind)
	}
	switch m.Kind {
	case messagePacket, messageGate, messageLock, messageComplete:
		ended := m.X
		if m.Kind >= messageLock {
			ended = m.Y
		}
		early, err := c.early(ended)
		switch {
		case err != nil:
			return err
		case early:
			s.putOff(from, m, payload, ended)
		case m.Kind == messagePacket:
			c.tallies.packets.Store(true)
			return s.packet(from, payload)
		case m.Kind == messageLock:
			from.Urgent()
			return s.lock(from, m, payload)
		case m.Kind == messageComplete:
			if m.X != 0 {
				from.Urgent()
			}
			return s.complete(from, m, payload)
		}
	case messageMark:
		return s.mark(from, m)
	case messagePlace:
		from.Answer(c.own.control.place())
	case messageWord:
		if m.A == waitingAt && m.X == closedMark {
			c.own.control.pair(from.Rank(), waitingAt).Or(closedMark)
			return nil
		}
		if m.A != postAt && m.A != completeAt || m.X > 1<<32-1 {
			return fmt.Errorf("word %d := %d", m.A, m.X)
		}
		c.world.BeforeTelling()
		c.own.control.pair(from.Rank(), uintptr(m.A)).Store(uint32(m.X))
	case messageUnlock:
		if len(s.wishes) > 0 {
			from.Urgent()
		}
		return s.unlock(from, m)
	case messageGranted:
		return s.granted(from, m, payload)
	default:
		return fmt.Errorf("there is no message of kind %d", m.Kind)
	}
	return nil
}

// part is n bytes of this rank's part.
func (s *server) part(offset, n uint64) ([]byte, error) {
	data := s.core.own.data
	if size := uint64(len(data)); offset > size || n > size-offset {
		return nil, outside(n, offset, len(data))
	}
	return data[offset:][:n:n], nil
}

// answer is n bytes on an 8-byte boundary.
func (s *server) answer(n int) []byte {
	if 8*len(s.scratch) < n {
		s.scratch = make([]uint64, (n+7)/8)
	}
	return bytesOf(s.scratch)[:n]
}
