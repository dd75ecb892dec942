package sim

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/onesided/rma/internal/completion"
	"github.com/onesided/rma/verbs"
)

var _ verbs.Severer = (*queuePair)(nil)

// A queuePair is one end of a connection. As a requester it has the send queue and its outstanding requests, as a
// responder the receive queue and the pending responses.
type queuePair struct {
	// The fields that a request of the send queue needs come first, in as few cache lines as possible.
	device *Device
	peer   *queuePair
	state  verbs.State
	// epoch changes when the peer had no receive. What was sent before is dropped.
	epoch uint32
	// sends are the requests that no completion covers. They are numbered from first on. The first cleared of them have
	// ended well. next is the first that has not left, offset how much of it has. Those before known have been
	// responded to, or precede one that was.
	sends ring[request]
	first uint64
	next  uint64
	known uint64
	// open is the time from which on the peer listens.
	open   time.Duration
	closed bool
	// parked since parkedAt: the peer has no receive.
	parked bool
	// armed: an event will check the send queue. queued: it waits for its turn at the output.
	armed, queued bool
	// stopped: nothing leaves after a request that cannot be executed.
	stopped bool
	// rejected: a request of the peer could not be executed, and no later one will be.
	rejected bool
	// responseArmed and responseQueued are armed and queued for the responses.
	responseArmed, responseQueued bool
	// ignored: the response to the connection request is lost. guarded: an event will check whether the oldest request
	// was answered in time. progress is when the requester last learned of a request. retried: a sender that waits for
	// a receive counts from its next try.
	ignored, guarded, retried bool
	// silent: the last completion that an exhausted queue keeps has been stored.
	silent bool
	// lane is the lane of everything that travels from here to the peer.
	lane    uint32
	cleared int
	offset  int
	// reads is the number of outstanding reads and atomics.
	reads    int
	progress time.Duration
	sendCQ   *completionQueue
	recvCQ   *completionQueue
	// placedAt is when the card has placed what arrived last.
	placedAt time.Duration
	maxSends int

	receives ring[receive]
	// responses are the pending responses to reads and atomics. responded is how much of the first has left.
	responses   ring[response]
	responded   int
	maxReceives int
	number      uint32
	parkedAt    time.Duration
	// requestedAt is when the connection was requested.
	requestedAt time.Duration
	err         error
	// fault is why this side fails for a message of the peer.
	fault error
}

// A request is a work request of the send queue. Its slices are reused.
type request struct {
	verbs.SendRequest
	inline []byte
	length int
	// ready is the time from which its first byte can leave. sent is the time at which its first byte left in the latest
	// try.
	ready, sent time.Duration
	// executed: the peer has executed a request that returns no data. known is when the requester learns of that, or
	// could.
	executed bool
	known    time.Duration
	// done: a read or an atomic has its data, or the request has failed with status.
	done   bool
	status verbs.Status
}

// brings reports whether the request returns data.
func (r *request) brings() bool { return r.Opcode >= verbs.OpRDMARead }

// A receive is a posted receive. The card finds it from ready on.
type receive struct {
	id       uint64
	segments []verbs.Segment
	length   int
	ready    time.Duration
}

// A response is the pending response to a read or an atomic.
type response struct {
	number uint64
	ready  time.Duration
}

// newPair makes an unconnected queue pair.
func (d *Device) newPair(config verbs.QueuePairConfig) (*queuePair, error) {
	if d.unusable() {
		return nil, d.closedError("queue pair")
	}
	sendCQ, ok1 := config.SendQueue.(*completionQueue)
	recvCQ, ok2 := config.ReceiveQueue.(*completionQueue)
	if !ok1 || !ok2 || sendCQ.device != d || recvCQ.device != d {
		return nil, argumentError("queue pair: SendQueue and ReceiveQueue must be completion queues of this device")
	}
	for _, n := range []*int{&config.MaxSends, &config.MaxReceives} {
		if *n == 0 {
			*n = depth
		}
		if *n < 0 || *n > maxDepth {
			return nil, argumentError("queue pair: depth %d, allowed are 1 to %d, or 0 for %d", *n, maxDepth, depth)
		}
	}
	if !completion.Attach(sendCQ.completions, recvCQ.completions) {
		return nil, fmt.Errorf("sim: queue pair: its completion queue: %w", verbs.ErrClosed)
	}
	d.lastNumber++
	q := &queuePair{device: d, number: d.lastNumber, sendCQ: sendCQ, recvCQ: recvCQ, lane: d.sim.lane(), maxSends: config.MaxSends, maxReceives: config.MaxReceives}
	d.pairs = append(d.pairs, q)
	return q, nil
}

// Number returns the number of the queue pair.
func (q *queuePair) Number() uint32 { return q.number }

// State returns the state at the simulator's time.
func (q *queuePair) State() verbs.State {
	q.device.sim.mu.Lock()
	defer q.device.sim.mu.Unlock()
	return q.state
}

// Err returns why the queue pair is in StateError.
func (q *queuePair) Err() error {
	q.device.sim.mu.Lock()
	defer q.device.sim.mu.Unlock()
	return q.err
}

// Sever ends the connection because the peer is presumed dead.
func (q *queuePair) Sever() {
	s := q.device.sim
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dying() {
		return
	}
	if s.settle(); !s.dying() {
		q.fail(fmt.Errorf("sim: the connection was severed: %w", verbs.ErrDisconnected))
	}
}

// Close destroys the queue pair.
func (q *queuePair) Close() error {
	s := q.device.sim
	s.mu.Lock()
	defer s.mu.Unlock()
	if q.closed || s.dying() {
		return nil
	}
	if s.settle(); !s.dying() {
		q.destroy()
	}
	return nil
}

func (q *queuePair) destroy() {
	if q.closed {
		return
	}
	q.fail(fmt.Errorf("sim: queue pair: %w", verbs.ErrClosed))
	q.closed = true
	completion.Detach(q.sendCQ.completions, q.recvCQ.completions, q.number)
	d := q.device
	d.pairs = slices.DeleteFunc(d.pairs, func(other *queuePair) bool { return other == q })
}

// errPeerClosed is the error of a queue pair whose peer was closed.
var errPeerClosed = fmt.Errorf("%w: it closed its queue pair", verbs.ErrDisconnected)

// fail puts the queue pair in StateError and flushes it. The peer learns of it after everything that it was sent.
func (q *queuePair) fail(err error) {
	if q.state == verbs.StateError {
		return
	}
	q.state, q.err = verbs.StateError, err
	s := q.device.sim
	kind, gone := Failed, verbs.ErrPeerGone
	if errors.Is(err, verbs.ErrClosed) {
		kind, gone = Closed, errPeerClosed
	} else if errors.Is(err, errPeerClosed) {
		kind = Closed
	} else if errors.Is(err, verbs.ErrDisconnected) {
		gone = verbs.ErrDisconnected
	}
	q.report(Event{Kind: kind, At: s.now, Until: s.now})
	if q.peer != nil {
		q.part(fmt.Errorf("sim: %s ended the connection: %w", q.device.address, gone))
	}
	q.flush()
	q.device.channel.wake()
}

// part tells the peer that this side has ended, unless it was killed, or nothing gets through.
func (q *queuePair) part(cause error) {
	s := q.device.sim
	if arrives := q.device.leaves(s.now); arrives < forever {
		e := s.schedule(arrives+s.profile.Acknowledge, q.lane, evParted)
		e.pair, e.what = q.peer, cause
		return
	}
	q.peer.guard()
}

// flush completes all outstanding requests. Requests that ended well were unsignalled and are dropped. A failed request
// completes with its status.
func (q *queuePair) flush() {
	now := q.device.sim.now
	for i := q.cleared; i < q.sends.count; i++ {
		r := q.sends.at(i)
		if r.executed && r.known <= now && r.Flags&verbs.Signalled == 0 && r.status == verbs.StatusSuccess {
			continue
		}
		status := verbs.StatusFlushed
		if r.done && r.status != verbs.StatusSuccess {
			status = r.status
		}
		q.complete(r, status)
	}
	q.forget(q.sends.count)
	q.next, q.offset, q.reads, q.parked = q.first, 0, 0, false
	for q.receives.count > 0 {
		q.received(verbs.StatusFlushed, verbs.OpReceive, 0, 0)
	}
	q.responses.drop(q.responses.count)
}

// complete reports the end of a request.
func (q *queuePair) complete(r *request, status verbs.Status) {
	ended := verbs.Completion{ID: r.ID, QueuePair: q.number, Status: status, Opcode: r.Opcode}
	if s := q.device.sim; s.trace != nil {
		q.report(Event{Kind: Completed, At: s.now, Until: s.now, Opcode: r.Opcode, Request: r.ID, Bytes: r.length, Status: status})
	}
	if !q.sendCQ.push(q, &ended) {
		q.fail(errOverflow)
	}
}

// received ends the first receive.
func (q *queuePair) received(status verbs.Status, opcode verbs.Opcode, bytes int, immediate uint32) {
	r := q.receives.at(0)
	clear(r.segments)
	ended := verbs.Completion{ID: r.id, QueuePair: q.number, Status: status, Opcode: opcode, Bytes: uint32(bytes), Immediate: immediate}
	q.receives.drop(1)
	if s := q.device.sim; s.trace != nil {
		q.report(Event{Kind: Completed, At: s.now, Until: s.now, Opcode: opcode, Request: ended.ID, Bytes: bytes, Status: status})
	}
	if !q.recvCQ.push(q, &ended) {
		q.fail(errOverflow)
	}
}

// forget drops the first n requests.
func (q *queuePair) forget(n int) {
	for i := range n {
		clear(q.sends.at(i).Segments)
	}
	q.sends.drop(n)
	q.first += uint64(n)
	q.cleared = 0
}

// request returns the outstanding request with a number.
func (q *queuePair) request(number uint64) *request { return q.sends.at(int(number - q.first)) }
