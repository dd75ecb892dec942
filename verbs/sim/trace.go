package sim

import (
	"fmt"
	"time"

	"github.com/onesided/rma/verbs"
)

// EventKind says what an Event tells.
type EventKind uint8

const (
	// Posted: the processor has written a request of the send queue.
	Posted EventKind = iota
	// Sent: bytes of a request, or of the answer to one, pass the way out of the card,
	// from At until Until.
	Sent
	// Placed: a write or a message is in memory.
	Placed
	// Starved: the peer had no receive for a request.
	Starved
	// Completed: a completion is in its queue.
	Completed
	// Failed: a queue pair is in StateError.
	Failed
)

var eventKinds = [...]string{"posted", "sent", "placed", "starved", "completed", "failed"}

func (k EventKind) String() string {
	if int(k) < len(eventKinds) {
		return eventKinds[k]
	}
	return fmt.Sprintf("EventKind(%d)", uint8(k))
}

// An Event is something that a card does, for Simulator.Trace.
type Event struct {
	Kind EventKind
	// At is when it begins, Until when it ends.
	At, Until time.Duration
	// Rank is whose card it is, Peer the rank at the other end of its queue pair, -1
	// before there is one.
	Rank, Peer int
	QueuePair  uint32
	// Opcode and Request are the work request's, or the peer's whose answer it is.
	Opcode  verbs.Opcode
	Request uint64
	// Bytes of it, from Offset on.
	Offset, Bytes int
	Status        verbs.Status
}

// String is the event in a line.
func (e Event) String() string {
	return fmt.Sprintf("%d-%d %s rank %d to %d pair %d opcode %d request %d bytes %d+%d status %d",
		e.At, e.Until, e.Kind, e.Rank, e.Peer, e.QueuePair, e.Opcode, e.Request, e.Offset, e.Bytes, e.Status)
}

// report gives an event of the queue pair to who traces.
func (q *queuePair) report(e Event) {
	if q.device.sim.trace == nil {
		return
	}
	e.Rank, e.Peer, e.QueuePair = q.device.rank, -1, q.number
	if q.peer != nil {
		e.Peer = q.peer.device.rank
	}
	q.device.sim.trace(e)
}

// reportPlaced tells that the last piece of a request of the peer's has been placed.
func (q *queuePair) reportPlaced(r *request) {
	now := q.device.sim.now
	q.report(Event{Kind: Placed, At: now, Until: now, Opcode: r.Opcode, Request: r.ID, Bytes: r.length})
}
