package tcp

import (
	"fmt"
	"sync/atomic"

	"github.com/onesided/rma/internal/completion"
	"github.com/onesided/rma/verbs"
)

const (
	defaultDepth = 128
	maxDepth     = 1 << 20
	maxSegments  = 16
	maxInline    = 256
	maxMessage   = 1 << 30
)

// queuePair is the program's end of a connection, whose mutex guards it.
type queuePair struct {
	device *device
	conn   *connection
	number uint32
	sendCQ *completionQueue
	recvCQ *completionQueue

	state atomic.Uint32

	err    error
	closed bool

	// maxSends and maxReceives bound the requests and the receives.
	maxSends, maxReceives int
	// sends is a ring of the outstanding requests. The first built of them are wholly in batches. offset is how much of
	// the next one is.
	sends     []request
	sendFirst int
	sendCount int
	built     int
	offset    int
	// uncovered counts unsignalled requests that took effect and that no completion covers yet.
	uncovered int
	// firstNumber is the number of the first request.
	firstNumber uint32
	// unread are the numbers of the reads and atomics that are built and have no complete response.
	unread      [maxReads]uint32
	unreadFirst int
	unreadCount int
	// solicited: an acknowledgement of all that is built is on its way.
	solicited bool

	// receives is a ring.
	receives     []posted
	receiveFirst int
	receiveCount int
}

// request is an outstanding work request. Its slices are reused.
type request struct {
	verbs.SendRequest
	inline []byte
	length int
	// arrived is how much of a read has arrived. whole: all of it has.
	arrived int
	whole   bool
}

// posted is a receive.
type posted struct {
	id       uint64
	segments []verbs.Segment
	length   int
}

// firstEntries is the number of entries of a ring when it is first used.
const firstEntries = 8

// grown returns a ring of twice the length, but of at most most entries. The entries of the full ring, whose first is at
// first, are at its start. The caller holds the connection's mutex, so the goroutine that drives the device may wait for
// the copy. The last step to 1<<20 requests copies 60 MB.
func grown[T any](full []T, first, most int) []T {
	ring := make([]T, min(max(2*len(full), firstEntries), most))
	copy(ring[copy(ring, full[first:]):], full[:first])
	return ring
}

// newPair makes a queue pair for a connection.
func (d *device) newPair(config verbs.QueuePairConfig, c *connection) (*queuePair, error) {
	sendCQ, ok1 := config.SendQueue.(*completionQueue)
	recvCQ, ok2 := config.ReceiveQueue.(*completionQueue)
	if !ok1 || !ok2 || sendCQ.device != d || recvCQ.device != d {
		return nil, argumentError("queue pair: SendQueue and ReceiveQueue must be completion queues of this device")
	}
	for _, depth := range []*int{&config.MaxSends, &config.MaxReceives} {
		if *depth == 0 {
			*depth = defaultDepth
		}
		if *depth < 0 || *depth > maxDepth {
			return nil, argumentError("queue pair: depth %d, allowed are 1 to %d, or 0 for %d", *depth, maxDepth, defaultDepth)
		}
	}
	q := &queuePair{device: d, conn: c, sendCQ: sendCQ, recvCQ: recvCQ, firstNumber: 1,
		maxSends: config.MaxSends, maxReceives: config.MaxReceives}
	// Once the queue pair has its number, Close of the device may close it.
	if !completion.Attach(sendCQ.held, recvCQ.held) {
		return nil, errClosedQueue
	}
	if err := d.adopt(q); err != nil {
		completion.Detach(sendCQ.held, recvCQ.held, q.number)
		return nil, err
	}
	return q, nil
}

var (
	// errClosedQueue is the error of a queue pair with a closed queue, errOverflow that of the queue pairs of a full
	// queue.
	errClosedQueue = fmt.Errorf("tcp: queue pair: its completion queue: %w", verbs.ErrClosed)
	errOverflow    = fmt.Errorf("tcp: completion queue overflow: %w", verbs.ErrQueueFull)
)

func (q *queuePair) Number() uint32     { return q.number }
func (q *queuePair) State() verbs.State { return verbs.State(q.state.Load()) }

// Err returns why the queue pair is in StateError.
func (q *queuePair) Err() error {
	if q.State() != verbs.StateError {
		return nil
	}
	q.conn.mu.Lock()
	defer q.conn.mu.Unlock()
	return q.err
}

// fail puts the queue pair in StateError and flushes it.
func (q *queuePair) fail(err error) {
	if q.err != nil {
		return
	}
	q.err = err
	q.state.Store(uint32(verbs.StateError))
	q.flush()
}

// flush completes all outstanding requests.
func (q *queuePair) flush() {
	for q.sendCount > 0 {
		q.finish(verbs.StatusFlushed)
	}
	q.built, q.offset, q.unreadCount = 0, 0, 0
	for q.receiveCount > 0 {
		q.received(verbs.StatusFlushed, verbs.OpReceive, 0, 0)
	}
}

// finish completes the first request. It reports a success only if the request was signalled, and a failure always.
func (q *queuePair) finish(status verbs.Status) {
	r := &q.sends[q.sendFirst]
	if q.sendFirst++; q.sendFirst == len(q.sends) {
		q.sendFirst = 0
	}
	q.sendCount--
	q.firstNumber++
	if q.built > 0 {
		q.built--
	}
	clear(r.Segments)
	if status == verbs.StatusSuccess && r.Flags&verbs.Signalled == 0 {
		q.uncovered++
		return
	}
	q.uncovered = 0
	ended := verbs.Completion{ID: r.ID, QueuePair: q.number, Status: status, Opcode: r.Opcode}
	if !q.sendCQ.push(&ended) {
		q.conn.fail(errOverflow, shutdownInOrder)
	}
}

// received ends the first receive.
func (q *queuePair) received(status verbs.Status, opcode verbs.Opcode, bytes, immediate uint32) {
	r := &q.receives[q.receiveFirst]
	clear(r.segments)
	if q.receiveFirst++; q.receiveFirst == len(q.receives) {
		q.receiveFirst = 0
	}
	q.receiveCount--
	ended := verbs.Completion{ID: r.id, QueuePair: q.number, Status: status, Opcode: opcode, Bytes: bytes, Immediate: immediate}
	if !q.recvCQ.push(&ended) {
		q.conn.fail(errOverflow, shutdownInOrder)
	}
}

// PostReceive posts receives in order.
func (q *queuePair) PostReceive(requests []verbs.ReceiveRequest) (int, error) {
	c := q.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if q.closed {
		return 0, fmt.Errorf("tcp: PostReceive: %w", verbs.ErrClosed)
	}
	n, err := q.postReceives(requests)
	if q.err != nil {
		q.flush()
		return n, err
	}
	c.requests.posted += uint32(n)
	if c.phase == phaseReady {
		c.grant()
	}
	return n, err
}

func (q *queuePair) postReceives(requests []verbs.ReceiveRequest) (int, error) {
	for i := range requests {
		segments := requests[i].Segments
		if len(segments) > maxSegments {
			return i, argumentError("PostReceive: %d segments, at most %d are allowed", len(segments), maxSegments)
		}
		if q.receiveCount == q.maxReceives {
			return i, verbs.ErrQueueFull
		}
		if q.receiveCount == len(q.receives) {
			q.receives, q.receiveFirst = grown(q.receives, q.receiveFirst, q.maxReceives), 0
		}
		at := q.receiveFirst + q.receiveCount
		if at >= len(q.receives) {
			at -= len(q.receives)
		}
		r := &q.receives[at]
		r.id = requests[i].ID
		r.segments = append(r.segments[:0], segments...)
		r.length = 0
		for k := range segments {
			r.length += len(segments[k].Memory)
		}
		q.receiveCount++
	}
	return len(requests), nil
}

// grantDue reports whether the peer may run out of receives before another frame announces the new ones.
func (c *connection) grantDue() bool {
	n := &c.requests
	return n.posted-n.announced > n.announced-n.consumed
}

// grant announces new receives to the peer if that is due. The next poll sends the frame, so that a message posted
// before it can carry the grant. But a sleeper may be the only goroutine that polls. The store of wantsVisit precedes
// the load of sleepers here, and a sleeper's announcement precedes its load of wantedVisits; so one sees the other.
func (c *connection) grant() {
	if !c.grantDue() {
		return
	}
	c.wantVisit()
	if c.device.channel.sleepers.Load() > 0 && !c.stuck() {
		c.transmit()
	}
}

// Close destroys the queue pair.
func (q *queuePair) Close() error {
	c := q.conn
	c.mu.Lock()
	if q.closed {
		c.mu.Unlock()
		return nil
	}
	q.closed = true
	c.abandon()
	c.pair = nil
	c.mu.Unlock()
	completion.Detach(q.sendCQ.held, q.recvCQ.held, q.number)
	q.device.forget(q)
	return nil
}
