//go:build ibverbs && cgo && linux

package ibv

import (
	"errors"
	"fmt"
	"sync"

	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/verbs"
)

// Two queue pairs are connected in three steps. The calling side sends the endpoint of its queue pair. The called side,
// when its program accepts, connects its own to that and sends its endpoint. Then the calling side connects and sends
// ready. Before that, its card would drop requests, so the called side keeps them until then.

// Connect starts a connection.
func (d *device) Connect(address string, hello []byte, config verbs.QueuePairConfig) (verbs.QueuePair, error) {
	if len(hello) > verbs.MaxHello {
		return nil, d.argumentError("Connect: hello of %s, at most %d are allowed", errtext.Count(len(hello), "byte"), verbs.MaxHello)
	}
	q, err := d.newPair(config)
	if err != nil {
		return nil, err
	}
	hello = append([]byte(nil), hello...)
	if !d.work(func() { d.follow(q, address, hello) }) {
		return nil, errors.Join(d.closedError("Connect"), q.Close())
	}
	return q, nil
}

// follow calls the peer, and follows the connection while there is one.
func (d *device) follow(q *queuePair, address string, hello []byte) {
	c, err := d.connectionManager.call(address, &q.own, hello)
	if err != nil {
		q.lose(err)
		return
	}
	defer d.connectionManager.connections.remove(c)
	defer c.end()
	if !d.connectionManager.connections.add(c) || !q.hold(c) {
		q.lose(d.closedError("Connect"))
		return
	}
	for {
		k, payload, err := c.receive()
		if err != nil {
			q.lose(d.goneError(c.peer, err))
			return
		}
		if err := q.takeResponse(c, k, payload); err != nil {
			q.lose(err)
			return
		}
	}
}

// takeResponse continues after the peer has responded.
func (q *queuePair) takeResponse(c *connection, k kind, payload []byte) error {
	d := q.device
	switch {
	case k == kindReject && q.State() == verbs.StateConnecting:
		return fmt.Errorf("ibv: %s: %s: %w: %s", d.name, c.peer, verbs.ErrRejected, printable(payload))
	case k != kindAccept || q.State() != verbs.StateConnecting:
		return fmt.Errorf("ibv: %s: %s: %w: kind %d from the side that was called", d.name, c.peer, ErrProtocol, k)
	}
	var peer endpoint
	if err := peer.parse(payload); err != nil {
		return fmt.Errorf("ibv: %s: %s: %w", d.name, c.peer, err)
	}
	if err := q.join(&peer); err != nil {
		return err
	}
	c.send(kindReady, nil)
	q.ready()
	q.begin()
	return nil
}

// connectionRequest is a peer that has proved the key and sent its hello.
type connectionRequest struct {
	device     *device
	connection *connection
	meant      [identitySize]byte
	peer       endpoint
	hello      []byte

	mu        sync.Mutex
	pair      *queuePair
	responded bool
	gone      error
}

// maxAsked bounds the connections that wait for PollConnections.
const maxAsked = 4096

// ask queues a connection request.
func (d *device) ask(r *connectionRequest) {
	d.askedMu.Lock()
	full := len(d.asked) >= maxAsked
	if !full {
		d.asked = append(d.asked, r)
		d.waiting.Store(int32(len(d.asked)))
	}
	d.askedMu.Unlock()
	if full {
		r.Reject(fmt.Sprintf("%d connections wait to be accepted already", maxAsked))
		return
	}
	d.channel.Wake()
}

// PollConnections takes connection requests.
func (d *device) PollConnections(into []verbs.ConnectionRequest) int {
	if d.waiting.Load() == 0 || d.closed.Load() {
		return 0
	}
	d.askedMu.Lock()
	defer d.askedMu.Unlock()
	n := min(len(into), len(d.asked))
	for i := range n {
		into[i] = d.asked[i]
	}
	rest := copy(d.asked, d.asked[n:])
	clear(d.asked[rest:])
	d.asked = d.asked[:rest]
	d.waiting.Store(int32(rest))
	return n
}

// Hello returns what the peer passed to Connect.
func (r *connectionRequest) Hello() []byte { return r.hello }

// Accept makes the queue pair.
func (r *connectionRequest) Accept(config verbs.QueuePairConfig) (verbs.QueuePair, error) {
	d := r.device
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case d.closed.Load():
		return nil, d.closedError("Accept")
	case r.responded:
		return nil, d.argumentError("Accept: the connection was accepted or rejected before")
	case r.gone != nil:
		return nil, r.gone
	}
	q, err := d.newPair(config)
	if err != nil {
		return nil, err
	}
	r.responded = true
	q.hold(r.connection)
	if err := q.join(&r.peer); err != nil {
		r.connection.reject(err.Error())
		q.mu.Lock()
		q.connection = nil
		q.mu.Unlock()
		return nil, errors.Join(err, q.Close())
	}
	r.pair = q
	q.ready()
	r.connection.send(kindAccept, q.own.append(nil))
	return q, nil
}

// Reject fails the peer's queue pair with the reason.
func (r *connectionRequest) Reject(reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.responded || r.gone != nil {
		return
	}
	r.responded = true
	r.connection.reject(reason)
}

// begin lets the queue pair send: the peer's is connected.
func (r *connectionRequest) begin() {
	r.mu.Lock()
	q := r.pair
	r.mu.Unlock()
	if q != nil {
		q.begin()
	}
}

// lose records the end of the connection.
func (r *connectionRequest) lose(err error) {
	r.mu.Lock()
	r.gone = err
	q := r.pair
	r.mu.Unlock()
	if q != nil {
		q.lose(err)
	}
}

// printable returns a text of the peer in printable form.
func printable(text []byte) string {
	quoted := fmt.Sprintf("%.300q", text)
	return quoted[1 : len(quoted)-1]
}
