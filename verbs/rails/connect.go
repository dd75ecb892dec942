package rails

import (
	"crypto/rand"
	"fmt"
	"slices"
	"time"

	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/verbs"
)

// A hello of a rail begins with three bytes: the version of the messages, the number of rails, and the number of this
// rail. The token of the connection follows. Then comes the user's hello: as much as fits on rail 0, and the rest on
// rail 1.
const (
	version    = 1
	tokenBytes = 16
	helloBytes = 3 + tokenBytes
	// helloFirst is how much of the user's hello goes over rail 0.
	helloFirst = verbs.MaxHello - helloBytes
)

type token [tokenBytes]byte

// hello returns the hello of a rail.
func hello(rail, rails int, t token, user []byte) []byte {
	h := append([]byte{version, byte(rails), byte(rail)}, t[:]...)
	cut := min(len(user), helloFirst)
	switch rail {
	case 0:
		h = append(h, user[:cut]...)
	case 1:
		h = append(h, user[cut:]...)
	}
	return h
}

// parseHello takes a hello of a peer apart.
func parseHello(h []byte, rail, rails int) (t token, user []byte, err error) {
	switch {
	case len(h) < helloBytes:
		return t, nil, protocolError("a hello of %s; the shortest has %d", errtext.Count(len(h), "byte"), helloBytes)
	case h[0] != version:
		return t, nil, protocolError("the peer speaks version %d of the messages, this side version %d", h[0], version)
	case int(h[1]) != rails:
		return t, nil, protocolError("the peer has %s, this side %d", errtext.Count(h[1], "rail"), rails)
	case int(h[2]) != rail:
		return t, nil, protocolError("the peer takes rail %d for its rail %d", rail, h[2])
	case rail > 1 && len(h) > helloBytes:
		return t, nil, protocolError("a hello of %s on rail %d; allowed are %d", errtext.Count(len(h), "byte"), rail, helloBytes)
	}
	copy(t[:], h[3:])
	return t, h[helloBytes:], nil
}

// Connect starts to connect on all rails.
func (d *device) Connect(address string, user []byte, config verbs.QueuePairConfig) (verbs.QueuePair, error) {
	if d.closed.Load() {
		return nil, d.closedError("Connect")
	}
	if len(user) > verbs.MaxHello {
		return nil, argumentError("Connect: hello of %s, at most %d are allowed", errtext.Count(len(user), "byte"), verbs.MaxHello)
	}
	addresses, err := parseAddress(address)
	if err != nil {
		return nil, err
	}
	if len(addresses) != len(d.rails) {
		return nil, argumentError("Connect: the device at %q has %s, this one %d; they have to have equally many", address, errtext.Count(len(addresses), "rail"), len(d.rails))
	}
	var t token
	_, _ = rand.Read(t[:]) // it never fails
	q, err := d.newPair(config, func(rail int, config verbs.QueuePairConfig) (verbs.QueuePair, error) {
		return d.rails[rail].Connect(addresses[rail], hello(rail, len(d.rails), t, user), config)
	})
	if err != nil {
		return nil, err
	}
	return q, nil
}

const (
	// maxCallers bounds the connection requests that wait for other rails, partLimit the time that they wait.
	maxCallers = 1024
	partLimit  = 30 * time.Second
)

// callers are the connection requests that the user has not polled yet.
type callers struct {
	// admission admits one poll of the rails at a time. into belongs to that poll.
	admission admission
	into      [batch]verbs.ConnectionRequest
	// waiting are the requests that lack rails, the oldest first. whole are complete.
	waiting, whole []*connectionRequest
}

// A connectionRequest has a request of each rail.
type connectionRequest struct {
	device *device
	token  token
	// rails has nil where no request has arrived yet.
	rails []verbs.ConnectionRequest
	// parts are the parts of the user's hello.
	parts [2][]byte
	since time.Duration
}

// PollConnections takes connection requests that have arrived over all rails.
func (d *device) PollConnections(into []verbs.ConnectionRequest) int {
	if d.closed.Load() {
		return 0
	}
	d.pollConnections()
	d.mu.Lock()
	defer d.mu.Unlock()
	n := min(len(into), len(d.callers.whole))
	for i := range n {
		into[i] = d.callers.whole[i]
	}
	d.callers.whole = slices.Delete(d.callers.whole, 0, n)
	return n
}

// pollConnections takes connection requests from the rails.
func (d *device) pollConnections() {
	c := &d.callers
	if !c.admission.enter() {
		return
	}
	defer func() {
		if c.admission.leave() {
			d.channel.Wake()
		}
	}()
	for rail := range d.rails {
		for {
			n := d.rails[rail].PollConnections(c.into[:])
			for i, r := range c.into[:n] {
				d.sort(rail, r)
				c.into[i] = nil
			}
			if n < len(c.into) {
				break
			}
		}
	}
	d.expire()
}

// sort adds a request of a rail to the others of its connection.
func (d *device) sort(rail int, r verbs.ConnectionRequest) {
	t, part, err := parseHello(r.Hello(), rail, len(d.rails))
	if err != nil {
		r.Reject(err.Error())
		return
	}
	now := d.Now()
	d.mu.Lock()
	c := &d.callers
	i := slices.IndexFunc(c.waiting, func(w *connectionRequest) bool { return w.token == t })
	var superseded *connectionRequest
	if i < 0 {
		if len(c.waiting) == maxCallers {
			superseded = c.waiting[0]
			c.waiting = slices.Delete(c.waiting, 0, 1)
		}
		i = len(c.waiting)
		c.waiting = append(c.waiting, &connectionRequest{device: d, token: t, rails: make([]verbs.ConnectionRequest, len(d.rails)), since: now})
	}
	w := c.waiting[i]
	taken := w.rails[rail] == nil
	if taken {
		w.rails[rail] = r
		if rail < len(w.parts) {
			w.parts[rail] = part
		}
		if !slices.Contains(w.rails, nil) {
			c.waiting, c.whole = slices.Delete(c.waiting, i, i+1), append(c.whole, w)
		}
	}
	d.mu.Unlock()
	if !taken {
		r.Reject(fmt.Sprintf("a connection with this token was made over rail %d before", rail))
	}
	if superseded != nil {
		superseded.Reject(fmt.Sprintf("%d connections wait for other rails", maxCallers))
	}
}

// expire rejects requests that have waited too long.
func (d *device) expire() {
	d.mu.Lock()
	var old []*connectionRequest
	if c := &d.callers; len(c.waiting) > 0 {
		n := 0
		for now := d.Now(); n < len(c.waiting) && now-c.waiting[n].since > partLimit; n++ {
		}
		old = slices.Clone(c.waiting[:n])
		c.waiting = slices.Delete(c.waiting, 0, n)
	}
	d.mu.Unlock()
	for _, w := range old {
		w.Reject(fmt.Sprintf("it has not come over all rails within %v", partLimit))
	}
}

// Hello returns what the peer passed to Connect.
func (r *connectionRequest) Hello() []byte { return slices.Concat(r.parts[0], r.parts[1]) }

// Accept makes the queue pair.
func (r *connectionRequest) Accept(config verbs.QueuePairConfig) (verbs.QueuePair, error) {
	if r.device.closed.Load() {
		return nil, r.device.closedError("Accept")
	}
	q, err := r.device.newPair(config, func(rail int, config verbs.QueuePairConfig) (verbs.QueuePair, error) {
		return r.rails[rail].Accept(config)
	})
	if err != nil {
		return nil, err
	}
	return q, nil
}

// Reject fails the peer's queue pair with the reason.
func (r *connectionRequest) Reject(reason string) {
	for _, rail := range r.rails {
		if rail != nil {
			rail.Reject(reason)
		}
	}
}
