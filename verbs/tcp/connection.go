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

// phase of a connection. It only grows.
type phase uint8

const (
	// phaseDialing: there is no stream yet.
	phaseDialing phase = iota
	// phaseAwaiting: the peer has not answered the hello.
	phaseAwaiting
	// phaseAsked: the peer's hello waits for Accept or Reject.
	phaseAsked
	phaseReady
	// phaseParting: the queue pair has ended. The last output leaves, what comes is
	// thrown away.
	phaseParting
	phaseClosed
)

// connection is one TCP connection: input.go and output.go move it, in both roles that
// a queue pair has, requester (request.go) and responder (respond.go).
type connection struct {
	device *device
	// peer names the other side in messages.
	peer string
	// slot is the connection's place in the device's table, -1 outside of it. It is
	// guarded by the device's mutex.
	slot int
	// errand: the device has to visit although the socket may be silent.
	errand atomic.Bool
	// blocked: the output waits for room. rides: the acknowledgement that is owed waits for a frame. Both
	// change under mu.
	blocked, rides atomic.Bool

	mu     sync.Mutex
	phase  phase
	stream stream
	// pair is nil until there is one, and again when it is closed.
	pair *queuePair
	// cancel ends the dialing.
	cancel func()
	// sent: something has left since the last visit.
	sent bool
	// armed: the poller waits for room for output.
	armed bool

	in       input
	out      output
	answers  answers
	requests counters
	health   health
}

// counters are what both sides have told each other of requests and receives.
type counters struct {
	// acked is what the peer has carried out, peerGranted how many receives it has
	// posted, sent how many of them requests have been sent to.
	acked, peerGranted, sent uint32
	// posted counts the receives that were posted here, announced those that the
	// peer was told of, consumed those that its requests have begun to take.
	posted, announced, consumed uint32
}

func newConnection(d *device, peer string, p phase) *connection {
	c := &connection{device: d, peer: peer, slot: -1, phase: p, cancel: func() {}}
	c.in.buffer = make([]byte, lookAhead)
	c.in.vectors = make([][]byte, 0, maxSegments+1)
	c.out.scratch = make([]byte, 0, scratchBytes)
	c.out.vectors = make([][]byte, 0, maxVectors)
	return c
}

// start gives a connection its stream.
func (c *connection) start(s stream, next phase) {
	c.stream = s
	c.phase = next
	c.health.begin(time.Now())
	if err := c.device.attach(c); err != nil {
		c.fail(err, partAtOnce)
		return
	}
	// What the handshake read too far no socket tells of. And who sleeps does not know
	// when to look at this peer, or on some systems its socket.
	c.wantVisit()
	c.device.channel.Ring()
}

// look takes what has come, and sends what that calls for. It reports whether something
// had come. It is what a rank does all the time that waits: the less it takes, the
// sooner is seen what comes.
func (c *connection) look() (some bool) {
	c.mu.Lock()
	if c.stream != nil && c.receive() {
		some = true
		c.device.heardOf.Add(1)
		c.transmit()
	}
	c.mu.Unlock()
	return some
}

// visit does all that there is to do.
func (c *connection) visit() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stream == nil {
		return
	}
	if c.receive() {
		c.device.heardOf.Add(1)
	}
	c.sent = false
	if c.transmit(); c.sent {
		// It may have taken long, and there may be more to send.
		c.device.heardOf.Add(1)
	}
}

// wantVisit makes the device visit although the socket may be silent.
func (c *connection) wantVisit() {
	if !c.errand.Swap(true) {
		c.device.errands.Add(1)
	}
}

// ride has the acknowledgement that is owed go with the next frame, or else after the next poll's look, and
// after longestRide if none comes. Where
// somebody sleeps, who may be the only one that polls, it goes now. A rider comes before the look for sleepers,
// and a sleeper announces itself before it looks for riders, so one sees the other.
func (c *connection) ride() {
	if !c.rides.Swap(true) {
		c.device.riders.Add(1)
		if !c.device.awaited.Swap(true) {
			c.device.overdue.Reset(longestRide)
		}
	}
	if c.device.channel.sleepers.Load() > 0 {
		c.alight()
	}
}

// alight has it go now.
func (c *connection) alight() {
	if c.rides.Load() {
		c.rides.Store(false)
		c.device.riders.Add(-1)
	}
}

// deliver sends an acknowledgement that nothing has taken along.
func (c *connection) deliver() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.rides.Load() {
		c.alight()
		c.transmit()
	}
}

// parting is how a connection ends.
type parting uint8

const (
	// partAtOnce closes the socket.
	partAtOnce parting = iota
	// partInOrder sends what is owed, and a word that this is the end.
	partInOrder
)

// fail ends the connection, and puts its queue pair in StateError.
func (c *connection) fail(err error, how parting) {
	if c.phase >= phaseParting {
		return
	}
	// What leaves later must not be of memory that goes back to its owners now.
	if how == partAtOnce || c.stream == nil || !c.settle() {
		c.shut()
	} else {
		c.phase = phaseParting
		c.health.begin(time.Now())
	}
	if c.pair != nil {
		c.pair.fail(err)
	}
	c.device.channel.Ring()
}

// shut closes the socket.
func (c *connection) shut() {
	c.phase = phaseClosed
	c.cancel()
	if c.errand.Swap(false) {
		c.device.errands.Add(-1)
	}
	if c.blocked.Swap(false) {
		c.device.blocked.Add(-1)
	}
	c.alight()
	if c.stream != nil {
		c.device.detach(c)
		c.stream.close()
		c.stream = nil
	}
	c.in.reset()
	c.out.reset()
}

// abandon destroys the queue pair's end of the connection.
func (c *connection) abandon() {
	if c.phase < phaseParting {
		c.out.bye = byeClosed
		c.fail(fmt.Errorf("tcp: queue pair: %w", verbs.ErrClosed), partInOrder)
		c.transmit()
	}
	// A socket that is closed with bytes unread takes back what it sent.
	if c.phase == phaseParting && c.out.ended && !c.out.refused {
		c.receive()
		c.shut()
	}
}

// lost ends the connection because the stream did.
func (c *connection) lost(err error) {
	// A system tells once of what has happened to a connection, here perhaps who wrote.
	// That a pipe is broken says no more than that the peer is gone.
	if err == io.EOF && c.out.cause != nil && !errors.Is(c.out.cause, syscall.EPIPE) {
		err = c.out.cause
	}
	if err == io.EOF {
		// A peer that ends in order sends a bye before: this is the end of its process, or of a broken connection.
		err = fmt.Errorf("tcp: %s: the connection ended: %w", c.peer, verbs.ErrPeerGone)
	} else {
		err = fmt.Errorf("tcp: %s: the connection broke: %w: %w", c.peer, err, verbs.ErrPeerGone)
	}
	if c.phase == phaseParting {
		c.shut()
		return
	}
	c.settleAll()
	c.fail(err, partAtOnce)
}

// settleAll completes what the peer has carried out when nothing more leaves, so that
// no batch matters.
func (c *connection) settleAll() {
	if c.pair != nil && c.out.left != c.requests.acked {
		c.out.left = c.requests.acked
		c.pair.settleSends()
	}
}

// violation ends the connection because of what the peer sent.
func (c *connection) violation(format string, args ...any) {
	c.fail(fmt.Errorf("tcp: %s: %w: %s", c.peer, ErrProtocol, fmt.Sprintf(format, args...)), partAtOnce)
}
