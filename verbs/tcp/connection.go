package tcp

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/onesided/rma/verbs"
)

// phase is the phase of a connection. It only grows.
type phase uint8

const (
	// phaseDialing: there is no stream yet.
	phaseDialing phase = iota
	// phaseAwaiting: the peer has not responded to the hello.
	phaseAwaiting
	// phaseRequested: the peer's hello waits for Accept or Reject.
	phaseRequested
	phaseReady
	// phaseShutdown: the queue pair has ended. The last output leaves, and input is discarded.
	phaseShutdown
	phaseClosed
)

// connection is one TCP connection. input.go and output.go move it, in both roles of a queue pair: requester
// (request.go) and responder (respond.go). There is one for a queue pair, because several bring nothing: a megabyte takes
// 123, 139 and 127 us over 1, 2 and 4 sockets.
type connection struct {
	device *device
	// peer names the other side in messages.
	peer string
	// slot is the connection's index in the device's table, -1 outside it. It is guarded by the device's mutex.
	slot int
	// wantsVisit: the device has to visit although the socket may be silent.
	wantsVisit atomic.Bool
	// blocked: the output waits for room. delayed: the pending acknowledgement waits for a frame. Both change under mu.
	blocked, delayed atomic.Bool

	mu     sync.Mutex
	phase  phase
	stream stream
	// pair is nil before there is one, and again after it is closed.
	pair *queuePair
	// cancel ends the dialing.
	cancel func()
	// sent: something has left since the last visit.
	sent bool
	// armed: the poller waits for room for output.
	armed bool

	in        input
	out       output
	responses responses
	requests  counters
	health    health
}

// counters are the counts of requests and receives that both sides have exchanged.
type counters struct {
	// acked is what the peer has executed, peerGranted the number of receives it has posted, sent the number of them
	// that requests have used.
	acked, peerGranted, sent uint32
	// posted counts the receives posted here, announced those that the peer knows of, consumed those that its requests
	// have begun to use.
	posted, announced, consumed uint32
}

func newConnection(d *device, peer string, p phase) *connection {
	return &connection{device: d, peer: peer, slot: -1, phase: p, cancel: func() {}}
}

// start gives a connection its stream.
func (c *connection) start(s stream, next phase) {
	c.stream = s
	c.phase = next
	c.health.begin(time.Now())
	if err := c.device.attach(c); err != nil {
		c.fail(err, shutdownNow)
		return
	}
	// No socket reports what the handshake read beyond its end. And sleepers do not know when to check this peer, or on
	// some systems its socket.
	c.wantVisit()
	c.device.channel.Wake()
}

// look processes input and sends what that requires. It reports whether there was input. A waiting rank calls it all
// the time: the less it takes, the sooner input is found. The device's driving is held.
func (c *connection) look() (some bool) {
	c.mu.Lock()
	if c.stream != nil && c.receive(&c.device.input) {
		some = true
		c.device.activity.Add(1)
		c.transmit()
	}
	c.mu.Unlock()
	return some
}

// visit does all that there is to do. The device's driving is held.
func (c *connection) visit() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stream == nil {
		return
	}
	if c.receive(&c.device.input) {
		c.device.activity.Add(1)
	}
	c.sent = false
	if c.transmit(); c.sent {
		// The visit may have taken long, and there may be more to send.
		c.device.activity.Add(1)
	}
}

// wantVisit makes the device visit although the socket may be silent.
func (c *connection) wantVisit() {
	if !c.wantsVisit.Swap(true) {
		c.device.wantedVisits.Add(1)
	}
}

// delayAcknowledgement lets the next frame carry the pending acknowledgement. Without a frame it leaves after the next
// poll, or after maxAckDelay. If a goroutine sleeps, which may be the only one that polls, the acknowledgement leaves
// now. The store of delayed precedes the load of sleepers here, and a sleeper's announcement precedes its load of
// delayed; so one sees the other.
func (c *connection) delayAcknowledgement() {
	if !c.delayed.Swap(true) {
		c.device.delayed.Add(1)
		if !c.device.awaited.Swap(true) {
			c.device.overdue.Reset(maxAckDelay)
		}
	}
	if c.device.channel.sleepers.Load() > 0 {
		c.endDelay()
	}
}

// endDelay ends the wait of the pending acknowledgement for another frame: the next transmit sends it.
func (c *connection) endDelay() {
	if c.delayed.Load() {
		c.delayed.Store(false)
		c.device.delayed.Add(-1)
	}
}

// flushAcknowledgement sends an acknowledgement that no frame has carried.
func (c *connection) flushAcknowledgement() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.delayed.Load() {
		c.endDelay()
		c.transmit()
	}
}

// shutdown is the way a connection ends.
type shutdown uint8

const (
	// shutdownNow closes the socket.
	shutdownNow shutdown = iota
	// shutdownInOrder sends pending output, and a bye.
	shutdownInOrder
)

// fail ends the connection, and puts its queue pair in StateError.
func (c *connection) fail(err error, how shutdown) {
	if c.phase >= phaseShutdown {
		return
	}
	// Later output must not refer to memory that returns to its owners now.
	if how == shutdownNow || c.stream == nil || !c.settle() {
		c.shut()
	} else {
		c.phase = phaseShutdown
		c.health.begin(time.Now())
	}
	if c.pair != nil {
		c.pair.fail(err)
	}
	c.device.channel.Wake()
}

// shut closes the socket.
func (c *connection) shut() {
	c.phase = phaseClosed
	c.cancel()
	if c.wantsVisit.Swap(false) {
		c.device.wantedVisits.Add(-1)
	}
	if c.blocked.Swap(false) {
		c.device.blocked.Add(-1)
	}
	c.endDelay()
	if c.stream != nil {
		c.device.detach(c)
		c.stream.close()
		c.stream = nil
	}
	c.in.reset()
	c.resetOutput()
}

// abandon destroys the queue pair's end of the connection.
func (c *connection) abandon() {
	if c.phase < phaseShutdown {
		c.out.bye = byeClosed
		c.fail(fmt.Errorf("tcp: queue pair: %w", verbs.ErrClosed), shutdownInOrder)
		c.transmit()
	}
	// Closing a socket with unread bytes discards what it sent.
	if c.phase == phaseShutdown && c.out.ended && !c.out.requestRejected {
		c.receive(new(inputBuffer))
		c.shut()
	}
}

// lost ends the connection because the stream ended.
func (c *connection) lost(err error) {
	// The system reports the error of a connection once, here perhaps to a write. A broken pipe only says that the peer
	// is gone.
	if err == io.EOF && c.out.cause != nil && !errors.Is(c.out.cause, syscall.EPIPE) {
		err = c.out.cause
	}
	if err == io.EOF {
		// A peer that ends in order sends a bye first. So its process has ended, or the connection broke.
		err = fmt.Errorf("tcp: %s: the connection ended: %w", c.peer, verbs.ErrPeerGone)
	} else {
		err = fmt.Errorf("tcp: %s: the connection broke: %w: %w", c.peer, err, verbs.ErrPeerGone)
	}
	if c.phase == phaseShutdown {
		c.shut()
		return
	}
	c.settleAll()
	c.fail(err, shutdownNow)
}

// settleAll completes what the peer has executed when nothing more leaves, so that batches do not matter.
func (c *connection) settleAll() {
	if c.pair != nil && c.out.left != c.requests.acked {
		c.out.left = c.requests.acked
		c.pair.settleSends()
	}
}

// violation ends the connection because of what the peer sent.
func (c *connection) violation(format string, args ...any) {
	c.fail(fmt.Errorf("tcp: %s: %w: %s", c.peer, ErrProtocol, fmt.Sprintf(format, args...)), shutdownNow)
}
