//go:build ibverbs && cgo && linux

package ibv

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/internal/raceorder"
	"github.com/onesided/rma/verbs"
)

const (
	defaultDepth = 128
	maxDepth     = 1 << 20
	// resolutions is how often the system is asked to resolve the peer's address on the network. Each attempt takes at
	// most a second.
	resolutions = 3
)

// queuePair is a queue pair of the card, and the requests that it was given.
//
// # How it fails
//
// The first error is that of a completion, of an event, or the end of the connection to the peer. It puts the card's
// queue pair in its error state, in which the card flushes the outstanding requests. After those, this package posts a
// request that only marks the end. When the mark is flushed, every earlier request that the card has not reported has
// succeeded and was unsignalled. Then this package flushes the requests that the card never had, and those posted
// later. All receives are reported, so they are only counted. If the card can report nothing any more, because it or
// its completion queue has failed, this package flushes everything.
type queuePair struct {
	device          *device
	raw             rawPair
	number          uint32
	slot            int
	identity        uint64
	sends, receives *completionQueue
	// sendRoom and receiveRoom are the completions that the queue pair reserves in its queues.
	sendRoom, receiveRoom int
	own                   endpoint

	state   atomic.Uint32
	sending ring
	// receiving is the ring of receives.
	receiving ring

	// joining is held while the card's queue pair is connected, which may take seconds, and to destroy it. It is taken
	// before mu.
	joining sync.Mutex
	// mu is taken after a completion queue's mu, and before every other lock.
	mu sync.Mutex
	// err is why the queue pair is in StateError. closed: it is destroyed.
	err    error
	closed bool
	// live: the card's queue pair is connected. open: the peer's is connected too, so that requests may leave.
	live, open bool
	connection *connection
	// postponed are the requests that wait for that, or for a fence, with copies of what does not belong to the device.
	postponed         []verbs.SendRequest
	postponedReceives []verbs.ReceiveRequest
	// lastRead is the position after the last read or atomic that the card was given. fencing: a fenced request waits
	// for it.
	lastRead uint64
	fencing  bool
}

// newPair makes an unconnected queue pair.
func (d *device) newPair(config verbs.QueuePairConfig) (*queuePair, error) {
	sends, ok1 := config.SendQueue.(*completionQueue)
	receives, ok2 := config.ReceiveQueue.(*completionQueue)
	if !ok1 || !ok2 || sends.device != d || receives.device != d {
		return nil, d.argumentError("queue pair: SendQueue and ReceiveQueue must be completion queues of this device")
	}
	most := min(maxDepth, d.limits.depth-2)
	for _, depth := range []*int{&config.MaxSends, &config.MaxReceives} {
		if *depth == 0 {
			*depth = min(defaultDepth, most)
		}
		if *depth < 0 || *depth > most {
			return nil, d.argumentError("queue pair: depth %d, allowed are 1 to %d, or 0 for %d", *depth, most, min(defaultDepth, most))
		}
	}
	// Two more than the user may post: the mark of the end, and a fence.
	q := &queuePair{device: d, sends: sends, receives: receives, sending: newRing(config.MaxSends), receiving: newRing(config.MaxReceives),
		sendRoom: config.MaxSends + 2, receiveRoom: config.MaxReceives}
	if err := sends.attach(q.sendRoom); err != nil {
		return nil, err
	}
	if err := receives.attach(q.receiveRoom); err != nil {
		sends.detach(q.sendRoom, nil)
		return nil, err
	}
	if err := q.create(); err != nil {
		sends.detach(q.sendRoom, nil)
		receives.detach(q.receiveRoom, nil)
		return nil, err
	}
	return q, nil
}

// create makes the card's part, and adds it to the device.
func (q *queuePair) create() error {
	d := q.device
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed.Load() {
		return d.closedError("queue pair")
	}
	var err error
	q.raw, _, err = d.card.newPair(q.sends.queue, q.receives.queue,
		sizes{sends: q.sendRoom, receives: q.receiveRoom, segments: d.attributes.MaxSegments, inline: d.attributes.MaxInline})
	if err != nil {
		return d.refused("creating a queue pair", err)
	}
	q.number = q.raw.number()
	if err := q.raw.toInit(d.port, d.limits.atomics); err != nil {
		err = d.transition(q.number, "INIT", &path{port: d.port}, err)
		return errors.Join(err, q.raw.destroy())
	}
	if q.own, err = d.endpoint(q.number); err != nil {
		return errors.Join(d.refused(fmt.Sprintf("asking for the state of port %d", d.port), err), q.raw.destroy())
	}
	if err := d.pairs.add(q); err != nil {
		return errors.Join(d.refused("creating a queue pair", err), q.raw.destroy())
	}
	return nil
}

// Number returns the card's number.
func (q *queuePair) Number() uint32 { return q.number }

// State returns the current state.
func (q *queuePair) State() verbs.State { return verbs.State(q.state.Load()) }

// Err returns why the queue pair is in StateError.
func (q *queuePair) Err() error {
	if q.State() != verbs.StateError {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.err
}

// PostSend posts requests in order.
func (q *queuePair) PostSend(requests []verbs.SendRequest) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return 0, fmt.Errorf("ibv: %s: PostSend: %w", q.device.name, verbs.ErrClosed)
	}
	buffer := q.device.postBuffers.take()
	defer q.device.postBuffers.leave(buffer)
	n, err := 0, error(nil)
	for ; n < len(requests); n++ {
		r := &requests[n]
		if err = q.check(r); err != nil {
			break
		}
		number := q.sending.put(entry{r.ID, r.Opcode, r.Flags&verbs.Signalled != 0})
		if !q.open || len(q.postponed) > 0 || !q.give(buffer, r, number) {
			q.keep(r)
		}
	}
	raceorder.Release()
	q.post(buffer)
	if q.err != nil {
		q.unwell()
	}
	return n, err
}

// check returns the error of a malformed request, or that there is no room for it. The card checks segments itself, but
// those of an atomic only after the peer's memory has changed.
func (q *queuePair) check(r *verbs.SendRequest) error {
	if _, err := q.device.attributes.CheckSend(r); err != nil {
		return err
	}
	if r.Opcode >= verbs.OpFetchAdd && r.RemoteAddress%8 != 0 {
		return q.device.argumentError("PostSend: an atomic at address %#x, which must be a multiple of 8", r.RemoteAddress)
	}
	if r.Opcode >= verbs.OpFetchAdd && !q.device.regions.hold(r.Segments) {
		return q.device.argumentError("PostSend: the segment of an atomic is not in the region that its key names, or that lacks LocalWrite")
	}
	if q.sending.full() {
		return verbs.ErrQueueFull
	}
	return nil
}

// give puts a request into the buffer. It returns false if the request has to wait for a fence.
func (q *queuePair) give(b *postBuffer, r *verbs.SendRequest, number uint64) bool {
	if q.err != nil {
		return false
	}
	flags := r.Flags
	if flags&verbs.Fence != 0 && q.device.limits.fencesFail {
		if q.lastRead > q.sending.head.Load() {
			q.fence(b)
			return false
		}
		flags &^= verbs.Fence
	}
	b.send(q.identity|number&q.sending.mask, r, flags)
	if r.Opcode >= verbs.OpRDMARead {
		q.lastRead = number + 1
	}
	if b.full() {
		q.post(b)
	}
	return true
}

// fence posts a request that completes after all earlier ones, whose last read or atomic may be unsignalled. It is for
// cards whose own fences fail.
func (q *queuePair) fence(b *postBuffer) {
	q.post(b)
	if q.fencing || q.err != nil {
		return
	}
	q.fencing = true
	if !q.mark(fencePlace, verbs.OpRDMAWrite) {
		q.fail(fmt.Errorf("ibv: %s: queue pair %#x: the card takes no fence", q.device.name, q.number))
	}
}

// passed posts the requests that have waited for a fence.
func (q *queuePair) passed() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.fencing, q.lastRead = false, 0
	q.advance()
}

// keep keeps a request until the queue pair is connected, or a fence is passed.
func (q *queuePair) keep(r *verbs.SendRequest) {
	if q.err != nil {
		return
	}
	kept := *r
	kept.Segments = slices.Clone(r.Segments)
	if r.Flags&verbs.Inline != 0 {
		for i := range kept.Segments {
			kept.Segments[i].Memory = slices.Clone(kept.Segments[i].Memory)
		}
	}
	q.postponed = append(q.postponed, kept)
}

// post gives the card the requests in the buffer. Requests that the card does not take are flushed.
func (q *queuePair) post(b *postBuffer) {
	if b.requests > 0 && q.err == nil {
		taken, err := q.raw.postSends(b)
		q.sending.given.Add(uint64(taken))
		if err != nil {
			q.fail(fmt.Errorf("ibv: %s: queue pair %#x: posting: %w", q.device.name, q.number, err))
		}
	}
	b.clear()
}

// PostReceive posts receives in order.
func (q *queuePair) PostReceive(requests []verbs.ReceiveRequest) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return 0, fmt.Errorf("ibv: %s: PostReceive: %w", q.device.name, verbs.ErrClosed)
	}
	var buffer *postBuffer
	if q.live && q.err == nil {
		buffer = q.device.postBuffers.take()
		defer q.device.postBuffers.leave(buffer)
	}
	n, err := 0, error(nil)
	for ; n < len(requests); n++ {
		r := &requests[n]
		if most := q.device.attributes.MaxSegments; len(r.Segments) > most {
			err = q.device.argumentError("PostReceive: %s, at most %d are allowed", errtext.Count(len(r.Segments), "segment"), most)
			break
		}
		if !q.device.regions.hold(r.Segments) {
			err = q.device.argumentError("PostReceive: a segment is not in the region that its key names, or that lacks LocalWrite")
			break
		}
		if q.receiving.full() {
			err = verbs.ErrQueueFull
			break
		}
		place := q.receiving.put(entry{id: r.ID}) & q.receiving.mask
		if buffer == nil {
			if q.err == nil {
				q.postponedReceives = append(q.postponedReceives, verbs.ReceiveRequest{ID: r.ID, Segments: slices.Clone(r.Segments)})
			}
			continue
		}
		buffer.receive(q.identity|receiveBit|place, r)
		if buffer.full() {
			q.postReceives(buffer)
		}
	}
	if buffer != nil {
		q.postReceives(buffer)
	}
	if q.err != nil {
		q.unwell()
	}
	return n, err
}

func (q *queuePair) postReceives(b *postBuffer) {
	if b.requests > 0 && q.err == nil {
		taken, err := q.raw.postReceives(b)
		q.receiving.given.Add(uint64(taken))
		if err != nil {
			q.fail(fmt.Errorf("ibv: %s: queue pair %#x: posting receives: %w", q.device.name, q.number, err))
		}
	}
	b.clear()
}

// join connects the card's queue pair to the peer's. The receives that wait are posted before the peer can send.
func (q *queuePair) join(peer *endpoint) error {
	q.joining.Lock()
	defer q.joining.Unlock()
	if q.State() != verbs.StateConnecting {
		return q.Err()
	}
	d := q.device
	p := path{port: d.port, gidIndex: d.gid.index, timeout: d.timeout, global: d.global}
	if err := p.combine(&q.own, peer); err != nil {
		return fmt.Errorf("ibv: %s: queue pair %#x: %w", d.name, q.number, err)
	}
	if err := q.resolve(&p); err != nil {
		return d.transition(q.number, "RTR", &p, err)
	}
	if err := q.raw.toSend(&p); err != nil {
		return d.transition(q.number, "RTS", &p, err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err != nil {
		return q.err
	}
	q.live = true
	buffer := d.postBuffers.take()
	defer d.postBuffers.leave(buffer)
	first := q.receiving.tail.Load() - uint64(len(q.postponedReceives))
	for i := range q.postponedReceives {
		buffer.receive(q.identity|receiveBit|(first+uint64(i))&q.receiving.mask, &q.postponedReceives[i])
		if buffer.full() {
			q.postReceives(buffer)
		}
	}
	q.postReceives(buffer)
	q.postponedReceives = nil
	return q.err
}

// resolve makes the card's queue pair accept what the peer's sends. The system resolves the peer's address over the
// network, and its request or the response may be lost.
func (q *queuePair) resolve(p *path) (err error) {
	for range resolutions {
		if err = q.raw.toReceive(p); !errors.Is(err, syscall.ETIMEDOUT) {
			break
		}
	}
	return err
}

// ready sets the state of a connected queue pair.
func (q *queuePair) ready() {
	q.state.CompareAndSwap(uint32(verbs.StateConnecting), uint32(verbs.StateReady))
	q.device.channel.Wake()
}

// begin posts the requests that wait, once the peer's queue pair is connected too.
func (q *queuePair) begin() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err != nil || q.open {
		return
	}
	q.open = true
	q.advance()
}

// advance posts the requests that wait, until one is fenced.
func (q *queuePair) advance() {
	buffer := q.device.postBuffers.take()
	defer q.device.postBuffers.leave(buffer)
	first := q.sending.tail.Load() - uint64(len(q.postponed))
	n := 0
	for n < len(q.postponed) && q.give(buffer, &q.postponed[n], first+uint64(n)) {
		n++
	}
	q.post(buffer)
	q.postponed = slices.Delete(q.postponed, 0, min(n, len(q.postponed)))
}

// hold sets the queue pair's connection. It returns false if the queue pair needs none any more.
func (q *queuePair) hold(c *connection) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err != nil {
		return false
	}
	q.connection = c
	return true
}

// lose fails the queue pair because of a failure of the device or the peer.
func (q *queuePair) lose(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.fail(err)
}

// abandonCard fails the queue pair because of a failure after which the card reports nothing any more.
func (q *queuePair) abandonCard(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	q.fail(err)
	q.abandon()
	q.unwell()
}

// errSevered is the error of a queue pair that was severed here.
var errSevered = fmt.Errorf("ibv: the connection was severed: %w", verbs.ErrDisconnected)

// Sever puts the queue pair in StateError. When it returns, the card applies nothing of the peer any more.
func (q *queuePair) Sever() { q.lose(errSevered) }

// fail puts the queue pair in StateError, with mu held.
func (q *queuePair) fail(err error) {
	if q.err != nil {
		return
	}
	q.err = err
	q.state.Store(uint32(verbs.StateError))
	q.postponed, q.postponedReceives = nil, nil
	switch {
	case q.connection == nil:
	case errors.Is(err, verbs.ErrDisconnected):
		q.connection.leave()
	default:
		q.connection.end()
	}
	switch {
	case q.raw.toError() != nil:
		q.abandon()
	case !q.open || !q.mark(markPlace, verbs.OpSend):
		q.sending.abandon()
	}
	q.unwell()
}

// abandon makes this package flush everything, with mu held: the card reports nothing any more.
func (q *queuePair) abandon() {
	q.sending.abandon()
	q.receiving.abandon()
}

// mark posts an empty request of this package. Its completion shows that earlier requests have ended.
func (q *queuePair) mark(place uint64, opcode verbs.Opcode) bool {
	b := q.device.postBuffers.take()
	defer q.device.postBuffers.leave(b)
	b.send(q.identity|place, &verbs.SendRequest{Opcode: opcode}, verbs.Signalled)
	taken, err := q.raw.postSends(b)
	b.clear()
	return err == nil && taken == 1
}

// unwell makes the completion queues flush what the card does not.
func (q *queuePair) unwell() {
	q.sends.addFailed(q)
	q.receives.addFailed(q)
	q.device.channel.Wake()
}

// flush completes the requests that the card never had, once it has reported all that it had. It reports whether there
// are more.
func (q *queuePair) flush(r *ring, into []verbs.Completion, n *int) (more bool) {
	if r == &q.sending && !r.drained.Load() || r == &q.receiving && r.head.Load() < r.given.Load() {
		return true
	}
	for *n < len(into) {
		e, ok := r.flush()
		if !ok {
			return false
		}
		opcode := e.opcode
		if r == &q.receiving {
			opcode = verbs.OpReceive
		}
		into[*n] = verbs.Completion{ID: e.id, QueuePair: q.number, Status: verbs.StatusFlushed, Opcode: opcode}
		*n++
	}
	return true
}

// Close destroys the queue pair.
func (q *queuePair) Close() error {
	q.joining.Lock()
	defer q.joining.Unlock()
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return nil
	}
	q.closed = true
	if q.err == nil {
		q.err = fmt.Errorf("ibv: %s: queue pair %#x: %w", q.device.name, q.number, verbs.ErrClosed)
	}
	q.state.Store(uint32(verbs.StateError))
	q.postponed, q.postponedReceives = nil, nil
	if q.connection != nil {
		q.connection.leave()
	}
	q.device.pairs.remove(q)
	err := q.raw.destroy()
	q.mu.Unlock()
	q.sends.detach(q.sendRoom, q)
	q.receives.detach(q.receiveRoom, q)
	if err != nil {
		return q.device.refused(fmt.Sprintf("destroying queue pair %#x", q.number), err)
	}
	return nil
}
