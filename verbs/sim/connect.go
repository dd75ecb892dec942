package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/verbs"
)

// A connectionRequest is a queue pair that needs a peer.
type connectionRequest struct {
	from      *queuePair
	address   string
	to        *Device
	hello     []byte
	responded bool
}

// Connect starts a connection.
func (d *Device) Connect(address string, hello []byte, config verbs.QueuePairConfig) (verbs.QueuePair, error) {
	s := d.sim
	s.mu.Lock()
	defer s.mu.Unlock()
	if d.unusable() {
		return nil, d.closedError("Connect")
	}
	if len(hello) > verbs.MaxHello {
		return nil, argumentError("Connect: hello of %s, at most %d are allowed", errtext.Count(len(hello), "byte"), verbs.MaxHello)
	}
	q, err := d.newPair(config)
	if err != nil {
		return nil, err
	}
	q.requestedAt = *s.local()
	if arrives := d.leaves(q.requestedAt + s.profile.Connect); arrives < forever {
		s.schedule(arrives, q.lane, evConnect).what = &connectionRequest{from: q, address: address, hello: slices.Clone(hello)}
	} else {
		q.ignore()
	}
	return q, nil
}

// PollConnections takes connection requests.
func (d *Device) PollConnections(into []verbs.ConnectionRequest) int {
	d.sim.mu.Lock()
	defer d.sim.mu.Unlock()
	if !d.sim.look() {
		return 0
	}
	n := copy(into, d.requests)
	d.requests = slices.Delete(d.requests, 0, n)
	return n
}

// arrive makes the request arrive at its device, if there is one.
func (r *connectionRequest) arrive(e *event) {
	if r.from.state != verbs.StateConnecting {
		return
	}
	if r.to = r.from.device.sim.open[r.address]; r.to == nil {
		if end, dead := r.from.device.sim.dead[r.address]; dead && end.power {
			r.from.ignore()
			return
		}
		r.reject(r.from.device.sim.now, fmt.Errorf("sim: no device at %q: %w", r.address, verbs.ErrPeerGone))
		return
	}
	if r.to.hold(e) {
		return
	}
	r.to.requests = append(r.to.requests, r)
	r.to.channel.wake()
}

// reject fails the queue pair that requested the connection, with a response that leaves at a time.
func (r *connectionRequest) reject(at time.Duration, cause error) {
	r.responded = true
	s := r.from.device.sim
	arrives := at + s.profile.Wire
	if r.to != nil {
		arrives = r.to.leaves(at)
	}
	if arrives == forever {
		r.from.ignore()
		return
	}
	e := s.schedule(arrives+s.profile.Acknowledge, r.from.lane, evRejected)
	e.pair, e.what = r.from, cause
}

// Hello returns what the peer passed to Connect.
func (r *connectionRequest) Hello() []byte { return r.hello }

// Reject fails the peer's queue pair.
func (r *connectionRequest) Reject(reason string) {
	s := r.from.device.sim
	s.mu.Lock()
	defer s.mu.Unlock()
	if !r.responded && !r.to.unusable() {
		r.reject(*s.local(), fmt.Errorf("sim: %s: %w: %s", r.address, verbs.ErrRejected, reason))
	}
}

// Accept makes the accepting end.
func (r *connectionRequest) Accept(config verbs.QueuePairConfig) (verbs.QueuePair, error) {
	s := r.from.device.sim
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.responded {
		return nil, fmt.Errorf("sim: Accept of a connection request that already has a response: %w", verbs.ErrClosed)
	}
	if r.from.state != verbs.StateConnecting {
		return nil, fmt.Errorf("sim: Accept: the peer has closed its queue pair: %w", verbs.ErrPeerGone)
	}
	q, err := r.to.newPair(config)
	if err != nil {
		return nil, err
	}
	r.responded = true
	q.peer, q.state = r.from, verbs.StateReady
	q.open = *s.local() + s.profile.Connect
	arrives := q.device.leaves(q.open)
	if arrives == forever {
		r.from.ignore()
		return q, nil
	}
	q.open = arrives
	e := s.schedule(arrives, q.lane, evAccepted)
	e.pair, e.what = r.from, q
	return q, nil
}

// accepted connects the end that requested the connection. If that has ended, the other end ends too.
func (q *queuePair) accepted(by *queuePair) {
	q.peer = by
	if q.state != verbs.StateConnecting {
		q.part(fmt.Errorf("sim: %s withdrew the connection: %w", q.device.address, verbs.ErrPeerGone))
		return
	}
	q.state = verbs.StateReady
	q.device.channel.wake()
	q.arm()
	by.arm()
}
