package window

import (
	"fmt"
	"sync/atomic"

	"github.com/onesided/rma/aggregate/reduce"
	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/internal/job"
)

// The kinds of messages between ranks that map no memory of each other. All go to the service that has the window's
// number.
const (
	// messagePacket is a packet of operations: see aggregate. Its response is that of the packet. X is the last Fence
	// that the sender has ended. The packet is postponed until this rank has ended it, too.
	messagePacket = job.FirstKind + iota
	// messageGate gets its response when this rank has ended Fence X. messageMark is the marker: all operations of the
	// sender before Fence X have arrived.
	messageGate
	messageMark
	// messageWord sets the sender's word A of the target's control block to X, or records there that the sender has
	// closed the window.
	messageWord
	// messageLock requests a lock of kind A, with ticket X. If it has a packet, that is applied under the lock. If B is
	// lockOnce the lock is released then. Y is the last Fence that the sender has ended. messageUnlock releases a lock,
	// or withdraws the request.
	messageLock
	messageUnlock
	// messageComplete is Complete number Z of the sender. When this rank has posted, its packet is applied and the word
	// is set. If X is not 0, it is a ticket, which is then granted with the response. Y is as of messageLock.
	messageComplete
	// messageAttach is of a client to the process that serves it. It requests the window that its payload names: see
	// request. X is the number of the request. messageAttached is the response. Y is the number of the window in later
	// messages, which comes with its offer. If Y is 0 the request is rejected: A is the reason, Z a detail of it, and
	// the payload a text. messageDetach means that the client has closed window X.
	messageAttach
	messageAttached
	messageDetach
	// messagePlace requests the place in the program where this rank has made its last collective call of the window.
	messagePlace
)

// The reasons why a request for a window is rejected: as the text says; no window has the name; its elements have kind
// Z; its Z seats are all taken; it is closed; the session has Z seats and gets no more.
const (
	refusedText uint8 = iota
	refusedName
	refusedKind
	refusedSeats
	refusedClosed
	refusedShare
)

// messageGranted grants a lock or a Complete with ticket X. It has the response to the packet that came with the
// messageLock or messageComplete. It is not postponed for a Fence of its target: other ranks may be unable to come to
// that Fence before it arrives.
const messageGranted = job.FirstOvertaking

// lockOnce is a lock for the packet of its request alone.
const lockOnce = 1

// A server serves the messages of other ranks to this rank's part of a window. It checks them as if any process could
// have sent them.
type server struct {
	core *core
	// views has the part as elements of each kind that was needed.
	views [reduce.Kinds]*view
	// scratch is the memory in which responses are made.
	scratch []uint64
	// wishes has lock requests that could not be granted at once, at most one of each rank, and Completes whose packets
	// are being applied. retrying is set while progress tries them again.
	wishes   []*wish
	retrying bool
	tryAgain func() bool
	// early has Completes that wait for a post of this rank, at most one of each rank. waiting is set if there are
	// some.
	early   []*wish
	waiting atomic.Bool
	// delays has the message of each rank that waits for a Fence.
	delays []*delay
	// spare has wishes that are not in use.
	spare []*wish
	// In the server of a guest held has the bit of each kind of lock that it holds, and grants counts the locks that it
	// was granted.
	held   atomic.Uint32
	grants atomic.Uint64
	// waits is the number of wishes for locks that are not granted. claimed is the number of those that the control
	// block shows. A wish that has the exclusive word and waits for shared holders is not among these.
	waits, claimed atomic.Int32
	// ended is set when the memory may be freed.
	ended atomic.Bool
	stop  func()
}

// After end returns, no message is served and no request granted.
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

// Serve handles a message.
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
		c.world.RaceRelease()
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

// part returns n bytes of this rank's part.
func (s *server) part(offset, n uint64) ([]byte, error) {
	data := s.core.own.data
	if size := uint64(len(data)); offset > size || n > size-offset {
		return nil, outside(n, offset, len(data))
	}
	return data[offset:][:n:n], nil
}

// answer returns n bytes on an 8-byte boundary for a response.
func (s *server) answer(n int) []byte {
	if 8*len(s.scratch) < n {
		s.scratch = make([]uint64, (n+7)/8)
	}
	return bytesOf(s.scratch)[:n]
}
