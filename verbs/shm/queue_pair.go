package shm

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/onesided/rma/verbs"
)

// queuePair is one end of a connection: a ring in, a ring out, the requests that have not completed, and the posted
// receives.
//
// Requests take effect in order. A send takes effect when the peer has taken its last frame. Writes, reads and atomics
// are executed here, by the CPU of the goroutine that posts or polls, after everything before them has taken effect.
type queuePair struct {
	device *device
	number uint32
	sendCQ *completionQueue
	recvCQ *completionQueue

	state atomic.Uint32
	// waiting: requests are outstanding, so progress may find something.
	waiting atomic.Bool
	// missed: a poll skipped the queue pair because its mutex was held.
	missed atomic.Bool

	// mu is unlocked by unlock.
	mu   sync.Mutex
	err  error
	peer peer
	in   ring
	out  ring
	// locator is where peers find the ring in.
	locator uint64

	sends     []request
	sendFirst int
	sendCount int
	// pushed counts the requests from sendFirst on whose frames are in the ring, or that have none.
	pushed int
	// written and taken are how far this side has written the ring out and how far the peer has taken it. They are
	// copies, because the peer can write to the ring's own words. taken only grows, and never beyond written.
	written, taken uint64
	// consumed is how far this side has taken the ring in. The ring's tail has the same value for the peer.
	consumed atomic.Uint64
	// offset is how much of the first request that is not pushed is in the ring.
	offset int
	// uncovered counts unsignalled requests that took effect and that no completion covers yet.
	uncovered int

	receives     []receive
	receiveFirst int
	receiveCount int
	// filled is how much of the first receive the current message has filled.
	filled int

	closed bool
}

// request is an outstanding work request. Its slices are reused.
type request struct {
	verbs.SendRequest
	inline []byte
	length int
	// end is the position in the ring at which its last frame ends, for sends.
	end uint64
}

type receive struct {
	id       uint64
	segments []verbs.Segment
	length   int
}

// peer is the other device as a queue pair needs it.
type peer interface {
	verbs.Neighbor
	// access returns n bytes at address of the peer's memory, if rkey and right allow. foreign: they cannot be mapped.
	access(address uint64, n int, rkey uint32, right verbs.Access) (memory []byte, foreign bool, status verbs.Status)
	// ringAt returns the peer's ring at locator.
	ringAt(locator uint64) (ring, error)
	// gone returns the reason if the peer will never respond, and nil otherwise.
	gone() error
}

const (
	defaultDepth = 128
	maxDepth     = 1 << 20
	maxSegments  = 16
	maxInline    = 256
	maxMessage   = 1 << 30
)

// newPair makes an unconnected queue pair with its ring.
func (d *device) newPair(config verbs.QueuePairConfig) (*queuePair, error) {
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
	q := &queuePair{device: d, sendCQ: sendCQ, recvCQ: recvCQ,
		sends: make([]request, config.MaxSends), receives: make([]receive, config.MaxReceives)}
	in, locator, err := d.newRing()
	if err != nil {
		return nil, err
	}
	q.in, q.locator = in, locator
	// Once the queue pair has its number, Close of the device may close it. Without a peer, no driver looks at its
	// ring.
	if !q.attachQueues() {
		d.freeRing(in, locator)
		return nil, errClosedQueue
	}
	if err := d.adopt(q); err != nil {
		q.detachQueues()
		d.freeRing(in, locator)
		return nil, err
	}
	return q, nil
}

// attach sets the peer that is about to be asked for the connection. It reports whether the queue pair has been closed,
// so that no peer is to be asked.
func (q *queuePair) attach(to peer) bool {
	q.mu.Lock()
	defer q.unlock()
	if !q.closed {
		q.peer = to
	}
	return !q.closed
}

var (
	// errClosedQueue is the error of a queue pair with a closed queue, errOverflow that of the queue pairs of a full
	// queue.
	errClosedQueue = fmt.Errorf("shm: queue pair: its completion queue: %w", verbs.ErrClosed)
	errOverflow    = fmt.Errorf("shm: completion queue overflow: %w", verbs.ErrQueueFull)
)

func (q *queuePair) Number() uint32     { return q.number }
func (q *queuePair) State() verbs.State { return verbs.State(q.state.Load()) }

// Err returns why the queue pair is in StateError.
func (q *queuePair) Err() error {
	if q.State() != verbs.StateError {
		return nil
	}
	q.mu.Lock()
	defer q.unlock()
	return q.err
}

// stirs reports whether progress may find something to do.
func (q *queuePair) stirs() bool {
	switch q.State() {
	case verbs.StateError:
		return q.waiting.Load()
	case verbs.StateConnecting:
		return true
	}
	return q.waiting.Load() || q.in.head.Load() != q.consumed.Load() || q.peerLeft() || q.peer.gone() != nil
}

// peerLeft reports whether the peer is done with either ring.
func (q *queuePair) peerLeft() bool {
	return q.in.left.Load()&leftByProducer != 0 || q.out.left.Load()&leftByConsumer != 0
}

// progress drives the queue pair unless another goroutine holds it. The holder may be copying a large message, and a
// poll does not wait for that. The second try is for a holder that unlocked before it could see missed.
func (q *queuePair) progress() {
	if !q.mu.TryLock() {
		q.missed.Store(true)
		if !q.mu.TryLock() {
			return
		}
	}
	defer q.unlock()
	q.drive()
}

// unlock unlocks the queue pair. It wakes the sleepers whose polls skipped it meanwhile.
func (q *queuePair) unlock() {
	q.mu.Unlock()
	if q.missed.Load() && q.missed.Swap(false) {
		q.device.channel.WakeIfSleeping()
	}
}

// drive moves everything that can move. It is called with the mutex.
func (q *queuePair) drive() {
	if q.closed {
		return
	}
	if q.State() == verbs.StateConnecting {
		q.checkResponse()
	}
	if q.State() == verbs.StateReady {
		moved := q.takeFrames()
		moved = q.advance() || moved
		if moved {
			q.peer.Wake()
		}
		q.notice()
	}
	if q.State() == verbs.StateError {
		q.flush()
	}
	q.waiting.Store(q.sendCount > 0 || q.State() == verbs.StateError && q.receiveCount > 0)
}

// checkResponse checks whether the peer has accepted.
func (q *queuePair) checkResponse() {
	if q.peer == nil {
		// This queue pair has sent no request yet, so a response in the ring is not for it.
		return
	}
	switch q.in.response.Load() {
	case responseAccepted:
		out, err := q.peer.ringAt(q.in.locator.Load())
		if err != nil {
			q.fail(err)
			return
		}
		q.out = out
		q.state.Store(uint32(verbs.StateReady))
	case responseRejected:
		length := min(q.in.locator.Load(), maxReason)
		reason := make([]byte, length)
		q.in.read(reason, 0)
		q.fail(fmt.Errorf("%w: %s", verbs.ErrRejected, reason))
	default:
		if err := q.peer.gone(); err != nil {
			q.fail(err)
		}
	}
}

const maxReason = 512

// notice ends the connection if the other side has. What the peer did before comes first. The peer stores fault after
// its last head and tail, and left after fault. notice loads left (in departed) before fault (in faulted), and takes
// frames and settles after both. So a load that sees either word also makes the last head and tail visible, and a load
// that sees left is followed by one that sees fault. Messages of the peer for which no receive is posted are lost; the
// peer has no completion of them.
func (q *queuePair) notice() {
	err := q.departed()
	status := q.out.faulted()
	if err == nil && status == verbs.StatusSuccess {
		return
	}
	q.takeFrames()
	q.settle()
	if q.State() == verbs.StateReady && status != verbs.StatusSuccess {
		err = fmt.Errorf("shm: the peer ended the connection: %w", status)
		if q.sendCount > 0 {
			q.finish(status)
		}
	}
	q.fail(err)
}

// departed returns the reason if the peer takes no part any more, and nil otherwise.
func (q *queuePair) departed() error {
	switch {
	case q.peerLeft() && (q.in.left.Load()|q.out.left.Load())&leftInFailure != 0:
		return fmt.Errorf("shm: the peer's queue pair failed: %w", verbs.ErrPeerGone)
	case q.peerLeft():
		return fmt.Errorf("shm: the peer closed its queue pair: %w", verbs.ErrDisconnected)
	}
	return q.peer.gone()
}

// fail puts the queue pair in StateError.
func (q *queuePair) fail(err error) {
	if q.State() == verbs.StateError {
		return
	}
	q.err = err
	q.state.Store(uint32(verbs.StateError))
	q.leaveRings()
	q.device.channel.Wake()
}

// leaveRings tells the peer that this side is done. If the peer has not accepted the connection yet, it will not.
func (q *queuePair) leaveRings() {
	if q.out.ringWords == nil && q.peer != nil && !q.in.response.CompareAndSwap(responseNone, responseWithdrawn) && q.in.response.Load() == responseAccepted {
		// The peer waits for this side to connect and leave.
		q.out, _ = q.peer.ringAt(q.in.locator.Load())
	}
	how := leftInFailure
	if errors.Is(q.err, verbs.ErrClosed) || errors.Is(q.err, verbs.ErrDisconnected) {
		how = 0
	}
	if q.out.ringWords != nil {
		q.out.leave(leftByProducer | how)
	}
	q.in.leave(leftByConsumer | how)
	if q.peer != nil {
		q.peer.Wake()
	}
}

// flush completes all outstanding requests.
func (q *queuePair) flush() {
	for q.sendCount > 0 {
		q.complete(&q.sends[q.sendFirst], verbs.StatusFlushed)
		q.sendFirst = q.after(q.sendFirst)
		q.sendCount--
	}
	q.pushed, q.offset = 0, 0
	for q.receiveCount > 0 {
		q.received(verbs.StatusFlushed, verbs.OpReceive, 0, 0)
	}
}

func (q *queuePair) after(i int) int {
	if i++; i == len(q.sends) {
		return 0
	}
	return i
}

// complete ends a request that has a slot.
func (q *queuePair) complete(r *request, status verbs.Status) {
	clear(r.Segments)
	q.completeSend(&r.SendRequest, status)
}

// completeSend completes a request. It reports a success only if the request was signalled, and a failure always.
func (q *queuePair) completeSend(r *verbs.SendRequest, status verbs.Status) {
	if status == verbs.StatusSuccess && r.Flags&verbs.Signalled == 0 {
		q.uncovered++
		return
	}
	q.uncovered = 0
	ended := verbs.Completion{ID: r.ID, QueuePair: q.number, Status: status, Opcode: r.Opcode}
	if !q.sendCQ.push(&ended) {
		q.fail(errOverflow)
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
	q.filled = 0
	ended := verbs.Completion{ID: r.id, QueuePair: q.number, Status: status, Opcode: opcode, Bytes: bytes, Immediate: immediate}
	if !q.recvCQ.push(&ended) {
		q.fail(errOverflow)
	}
}

// Close destroys the queue pair.
func (q *queuePair) Close() error {
	q.mu.Lock()
	if q.closed {
		q.unlock()
		return nil
	}
	q.closed = true
	if q.State() != verbs.StateError {
		q.fail(fmt.Errorf("shm: queue pair: %w", verbs.ErrClosed))
	}
	q.waiting.Store(false)
	peer := q.peer
	q.unlock()
	q.detachQueues()
	q.device.abandon(q, peer)
	return nil
}
