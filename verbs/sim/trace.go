package sim

import (
	"fmt"
	"time"

	"github.com/onesided/rma/verbs"
)

// EventKind is the kind of an Event.
type EventKind uint8

const (
	// Posted: the processor has written a request of the send queue, or a receive.
	Posted EventKind = iota
	// Sent: bytes of a request, or of its response, pass the output of the card, from At until Until. Received: they
	// pass the input.
	Sent
	Received
	// Placed: a write or a message is in memory.
	Placed
	// Starved: the peer had no receive for a request.
	Starved
	// Completed: a completion is in its queue.
	Completed
	// Failed: a queue pair is in StateError. Closed: it is so because its rank closed it, or the peer its own.
	Failed
	Closed
	// Computed, Copied, Registered, Deregistered and Polled: what a task had the rank's processor do, beside Posted.
	// Polled is for completion queues.
	Computed
	Copied
	Registered
	Deregistered
	Polled
	// Slept: a task has slept on the rank's channel.
	Slept
	// Called: the program, or a layer between it and the card, was in a call; see [Device.Span].
	Called
	// Struck: a rank has a fault. Healed: the fault is over.
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

// An Event is an action of a card, for [Simulator.Trace].
type Event struct {
	Kind EventKind
	// At is when it begins, Until when it ends.
	At, Until time.Duration
	// Rank is the rank of the card, Peer the rank at the other end of its queue pair, -1 before there is one.
	Rank, Peer int
	QueuePair  uint32
	// Task is the number of the task whose processor works, in the order of Go, from 1. It is zero if the card works,
	// or a goroutine that is no task.
	Task int
	// Opcode and Request are those of the work request. For a response they are those of the peer's request.
	Opcode  verbs.Opcode
	Request uint64
	// Response reports, for Sent and Received, that the bytes belong to the response to a request.
	Response bool
	// Bytes is the number of bytes of the request, from Offset on.
	Offset, Bytes int
	Status        verbs.Status
	// Fault is the fault that began or ended, as [Fault.String] returns it.
	Fault string
	// Call is the name passed to [Device.Span].
	Call string
}

// String returns the event as a line.
func (e Event) String() string {
	text := fmt.Sprintf("%d-%d %s rank %d to %d pair %d task %d opcode %d request %d bytes %d+%d status %d",
		e.At, e.Until, e.Kind, e.Rank, e.Peer, e.QueuePair, e.Task, e.Opcode, e.Request, e.Offset, e.Bytes, e.Status)
	if e.Response {
		text += " response"
	}
	if e.Fault != "" {
		text += ": " + e.Fault
	}
	if e.Call != "" {
		text += ": " + e.Call
	}
	return text
}

// report passes an event of the queue pair to the trace.
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

// reportPosted reports that the calling task has posted a request since a time.
func (q *queuePair) reportPosted(from time.Duration, opcode verbs.Opcode, id uint64, bytes int) {
	if s := q.device.sim; s.trace != nil {
		q.report(Event{Kind: Posted, At: from, Until: *s.local(), Task: s.task(), Opcode: opcode, Request: id, Bytes: bytes})
	}
}

// reportReceived reports that a piece of a request, or of a response, passes the input of q's card. The request is nil
// if q's peer has failed, or has begun to send it again.
func (q *queuePair) reportReceived(r *request, piece *event, from time.Duration) {
	if q.device.sim.trace == nil {
		return
	}
	e := Event{Kind: Received, At: from, Until: q.device.in.free, Response: piece.kind == evReturn, Offset: piece.offset, Bytes: piece.bytes}
	if r != nil {
		e.Opcode, e.Request = r.Opcode, r.ID
	}
	q.report(e)
}

// reportTask reports what the calling task had the processor do, if it took time.
func (d *Device) reportTask(k EventKind, from, until time.Duration, bytes int) {
	if s := d.sim; s.trace != nil && until > from {
		s.trace(Event{Kind: k, At: from, Until: until, Rank: d.rank, Peer: -1, Task: s.task(), Bytes: bytes})
	}
}

// Traced reports whether events are traced.
func (d *Device) Traced() bool {
	d.sim.mu.Lock()
	defer d.sim.mu.Unlock()
	return d.sim.trace != nil
}

// Span adds to the trace a span of the program, or of a layer between it and the card, between two times of Now.
func (d *Device) Span(name string, from, until time.Duration) {
	s := d.sim
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.trace != nil {
		s.trace(Event{Kind: Called, At: from, Until: until, Rank: d.rank, Peer: -1, Task: s.task(), Call: name})
	}
}

// reportFault reports the begin or end of a fault, once for each rank that has it and a card.
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

// task returns the number of the calling task, from 1.
func (s *Simulator) task() int {
	if s.current == nil {
		return 0
	}
	return s.current.number + 1
}

// reportPlaced reports that the last piece of a request of the peer has been placed.
func (q *queuePair) reportPlaced(r *request) {
	if s := q.device.sim; s.trace != nil {
		q.report(Event{Kind: Placed, At: s.now, Until: s.now, Opcode: r.Opcode, Request: r.ID, Bytes: r.length})
	}
}
