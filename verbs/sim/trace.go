package sim

import (
	"fmt"
	"time"

	"github.com/onesided/rma/verbs"
)

// EventKind says what an Event tells.
type EventKind uint8

const (
	// Posted: the processor has written a request of the send queue, or a receive.
	Posted EventKind = iota
	// Sent: bytes of a request, or of the answer to one, pass the way out of the card,
	// from At until Until; Received: the way in.
	Sent
	Received
	// Placed: a write or a message is in memory.
	Placed
	// Starved: the peer had no receive for a request.
	Starved
	// Completed: a completion is in its queue.
	Completed
	// Failed: a queue pair is in StateError; Closed: so it is because its rank closed it, or
	// the peer its own.
	Failed
	Closed
	// Computed, Copied, Registered, Deregistered and Polled: what a task had the rank's
	// processor do, beside Posted. Polled is of completion queues.
	Computed
	Copied
	Registered
	Deregistered
	Polled
	// Slept: a task has slept on the rank's channel.
	Slept
	// Called: the program, or a layer between it and the card, was in a call; see Device.Span.
	Called
	// Struck: a fault has come to a rank; Healed: it has gone.
	Struck
	Healed
	kinds
)

var eventKinds = [kinds]string{
	"posted", "sent", "received", "placed", "starved", "completed", "failed", "closed",
	"computed", "copied", "registered", "deregistered", "polled", "slept", "called", "struck", "healed",
}

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
	// Task is the number of the task whose processor it is, in the order of Go, and counts
	// from 1; zero if it is the card's, or of a goroutine that is no task.
	Task int
	// Opcode and Request are the work request's, or the peer's whose answer it is.
	Opcode  verbs.Opcode
	Request uint64
	// Answer tells of Sent and Received that the bytes are of the answer to a request.
	Answer bool
	// Bytes of it, from Offset on.
	Offset, Bytes int
	Status        verbs.Status
	// Fault is what has come or gone, as Fault.String has it.
	Fault string
	// Call is the name that Device.Span was given.
	Call string
}

// String is the event in a line.
func (e Event) String() string {
	text := fmt.Sprintf("%d-%d %s rank %d to %d pair %d task %d opcode %d request %d bytes %d+%d status %d",
		e.At, e.Until, e.Kind, e.Rank, e.Peer, e.QueuePair, e.Task, e.Opcode, e.Request, e.Offset, e.Bytes, e.Status)
	if e.Answer {
		text += " answer"
	}
	if e.Fault != "" {
		text += ": " + e.Fault
	}
	if e.Call != "" {
		text += ": " + e.Call
	}
	return text
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

// reportPosted tells that the task that calls has posted a request, since a time.
func (q *queuePair) reportPosted(from time.Duration, opcode verbs.Opcode, id uint64, bytes int) {
	if s := q.device.sim; s.trace != nil {
		q.report(Event{Kind: Posted, At: from, Until: *s.local(), Task: s.task(), Opcode: opcode, Request: id, Bytes: bytes})
	}
}

// reportReceived tells that a piece of a request, or of an answer, passes the way in of
// q's card. There is no request if q's peer has failed, or has begun to send it again.
func (q *queuePair) reportReceived(r *request, piece *event, from time.Duration) {
	if q.device.sim.trace == nil {
		return
	}
	e := Event{Kind: Received, At: from, Until: q.device.in.free, Answer: piece.kind == evReturn, Offset: piece.offset, Bytes: piece.bytes}
	if r != nil {
		e.Opcode, e.Request = r.Opcode, r.ID
	}
	q.report(e)
}

// reportTask tells what the task that calls had the processor do, if it took time.
func (d *Device) reportTask(k EventKind, from, until time.Duration, bytes int) {
	if s := d.sim; s.trace != nil && until > from {
		s.trace(Event{Kind: k, At: from, Until: until, Rank: d.rank, Peer: -1, Task: s.task(), Bytes: bytes})
	}
}

// Traced tells whether somebody traces what happens.
func (d *Device) Traced() bool {
	d.sim.mu.Lock()
	defer d.sim.mu.Unlock()
	return d.sim.trace != nil
}

// Span adds to the trace what the program, or a layer between it and the card, has done from
// one time of Now to another.
func (d *Device) Span(name string, from, until time.Duration) {
	s := d.sim
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.trace != nil {
		s.trace(Event{Kind: Called, At: from, Until: until, Rank: d.rank, Peer: -1, Task: s.task(), Call: name})
	}
}

// reportFault tells that a fault has come or gone, once for each rank that has it and a card.
func (s *Simulator) reportFault(k EventKind, f *Fault) {
	if s.trace == nil {
		return
	}
	text := f.String()
	for _, rank := range f.ranks() {
		if rank >= len(s.devices) {
			continue
		}
		s.trace(Event{Kind: k, At: s.now, Until: s.now, Rank: rank, Peer: -1, Fault: text})
	}
}

// task is the number of the task that calls, counted from 1.
func (s *Simulator) task() int {
	if s.current == nil {
		return 0
	}
	return s.current.number + 1
}

// reportPlaced tells that the last piece of a request of the peer's has been placed.
func (q *queuePair) reportPlaced(r *request) {
	if s := q.device.sim; s.trace != nil {
		q.report(Event{Kind: Placed, At: s.now, Until: s.now, Opcode: r.Opcode, Request: r.ID, Bytes: r.length})
	}
}
