package tcp

import (
	"fmt"

	"github.com/onesided/rma/verbs"
)

// connectionRequest is a peer that has proved the key and sent its hello.
type connectionRequest struct {
	conn  *connection
	hello []byte
}

// maxConnectionRequests bounds the connections that wait for PollConnections.
const maxConnectionRequests = 4096

// queueConnectionRequest queues a connection request of a peer.
func (d *device) queueConnectionRequest(c *connection, hello []byte) {
	d.mu.Lock()
	if d.closed.Load() || len(d.connectionRequests) == maxConnectionRequests {
		d.mu.Unlock()
		(&connectionRequest{conn: c}).Reject(fmt.Sprintf("%d connections wait to be accepted already, or the device was closed", maxConnectionRequests))
		return
	}
	d.connectionRequests = append(d.connectionRequests, &connectionRequest{c, hello})
	d.waiting.Store(int32(len(d.connectionRequests)))
	d.mu.Unlock()
	d.channel.Wake()
}

// PollConnections takes connection requests. It drives the device if there is no completion queue to do so.
func (d *device) PollConnections(into []verbs.ConnectionRequest) int {
	if d.queues.Load() == 0 {
		d.drive()
	}
	if d.waiting.Load() == 0 {
		return 0
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	n := min(len(into), len(d.connectionRequests))
	for i := range n {
		into[i] = d.connectionRequests[i]
	}
	rest := copy(d.connectionRequests, d.connectionRequests[n:])
	clear(d.connectionRequests[rest:])
	d.connectionRequests = d.connectionRequests[:rest]
	d.waiting.Store(int32(rest))
	return n
}

// Hello returns what the peer passed to Connect.
func (r *connectionRequest) Hello() []byte { return r.hello }

// Accept makes the queue pair.
func (r *connectionRequest) Accept(config verbs.QueuePairConfig) (verbs.QueuePair, error) {
	c := r.conn
	c.mu.Lock()
	if err := c.answerable("Accept"); err != nil {
		c.mu.Unlock()
		return nil, err
	}
	q, err := c.device.newPair(config, c)
	if err != nil {
		c.mu.Unlock()
		return nil, err
	}
	c.pair = q
	c.phase = phaseReady
	q.state.Store(uint32(verbs.StateReady))
	c.out.accept = true
	c.transmit()
	c.mu.Unlock()
	return q, nil
}

// Reject fails the peer's queue pair with the reason.
func (r *connectionRequest) Reject(reason string) {
	c := r.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.answerable("Reject") != nil {
		return
	}
	c.reject(reason)
}

// reject sends the peer the reason why there is no connection.
func (c *connection) reject(reason string) {
	if len(reason) > maxReason {
		reason = reason[:maxReason]
	}
	c.out.rejected, c.out.reason = true, reason
	c.fail(fmt.Errorf("tcp: %s: %w: %s", c.peer, verbs.ErrRejected, reason), shutdownInOrder)
	c.transmit()
}

// answerable returns an error if the request cannot be answered any more.
func (c *connection) answerable(call string) error {
	switch {
	case c.device.closed.Load():
		return c.device.closedError(call)
	case c.phase == phaseReady:
		return argumentError("%s: the connection was accepted before", call)
	case c.phase > phaseReady:
		return fmt.Errorf("tcp: %s: %s: the connection was rejected, or the peer has given it up: %w", c.peer, call, verbs.ErrPeerGone)
	}
	return nil
}
