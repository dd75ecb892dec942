package verbstest

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/onesided/rma/verbs"
)

type cardRequest struct {
	to    *card
	from  *cardPair
	hello []byte
	used  bool
}

func (c *card) Connect(address string, hello []byte, config verbs.QueuePairConfig) (verbs.QueuePair, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, verbs.ErrClosed
	}
	if len(hello) > verbs.MaxHello && c.broken("a hello that is too long is cut") {
		hello = hello[:verbs.MaxHello]
	}
	if len(hello) > verbs.MaxHello {
		return nil, fmt.Errorf("card: a hello of %d bytes, at most %d", len(hello), verbs.MaxHello)
	}
	p, err := c.pair(config)
	if err != nil {
		return nil, err
	}
	to := c.cards[address]
	if to == nil {
		if !c.broken("a connection to nowhere waits") {
			p.fail(fmt.Errorf("card: %q: %w", address, verbs.ErrPeerGone))
		}
		return p, nil
	}
	if c.broken("the hello ends at a zero") {
		if i := slices.Index(hello, 0); i >= 0 {
			hello = hello[:i]
		}
	}
	to.requests = append(to.requests, &cardRequest{to: to, from: p, hello: slices.Clone(hello)})
	to.bell.ring()
	return p, nil
}

func (c *card) PollConnections(into []verbs.ConnectionRequest) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := copy(into, c.requests)
	c.requests = c.requests[n:]
	return n
}

func (r *cardRequest) Hello() []byte { return r.hello }

func (r *cardRequest) Accept(config verbs.QueuePairConfig) (verbs.QueuePair, error) {
	r.to.mu.Lock()
	defer r.to.mu.Unlock()
	if r.used || r.from.state == verbs.StateError {
		return nil, fmt.Errorf("card: the request is over: %w", verbs.ErrPeerGone)
	}
	p, err := r.to.pair(config)
	if err != nil {
		return nil, err
	}
	r.used = true
	p.peer, r.from.peer = r.from, p
	p.state, r.from.state = verbs.StateReady, verbs.StateReady
	if r.to.broken("requests before acceptance are lost") {
		r.from.todo, r.from.outstanding = nil, 0
	}
	r.from.run()
	r.from.card.bell.ring()
	return p, nil
}

func (r *cardRequest) Reject(reason string) {
	r.to.mu.Lock()
	defer r.to.mu.Unlock()
	r.used = true
	err := fmt.Errorf("card: %w: %s", verbs.ErrRejected, reason)
	if r.to.broken("a rejection gives no reason") {
		err = errors.New("card: no")
	}
	r.from.fail(err)
}

type watch struct {
	address string
	lost    func(error)
}

func (c *card) Watch(address string, lost func(error)) (func(), error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, verbs.ErrClosed
	}
	w := &watch{address, lost}
	c.watches = append(c.watches, w)
	if c.cards[address] == nil && !c.broken("an earlier death is not told") {
		c.tell(address)
	}
	return sync.OnceFunc(func() {
		if c.broken("a watch cannot be stopped") {
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.watches = slices.DeleteFunc(c.watches, func(other *watch) bool { return other == w })
	}), nil
}

// tell tells those who watch an address that it is gone.
func (c *card) tell(address string) {
	if c.broken("a death goes unnoticed") {
		return
	}
	c.watches = slices.DeleteFunc(c.watches, func(w *watch) bool {
		if w.address != address {
			return false
		}
		go w.lost(fmt.Errorf("card: %s: %w", address, verbs.ErrPeerGone))
		if c.broken("a death is told twice") {
			go w.lost(fmt.Errorf("card: %s: %w", address, verbs.ErrPeerGone))
		}
		return true
	})
}

type cardNeighbor struct{ from, to *card }

func (c *card) Neighbor(address string) (verbs.Neighbor, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := c.neighbors[address]; n != nil && !c.broken("neighbors are not cached") {
		return n, nil
	}
	to := c.cards[address]
	if to == nil {
		return nil, &verbs.CapabilityError{Device: "card", Capability: "map " + address, Reason: "it is not there"}
	}
	if c.neighbors == nil {
		c.neighbors = map[string]*cardNeighbor{}
	}
	n := &cardNeighbor{c, to}
	c.neighbors[address] = n
	return n, nil
}

func (n *cardNeighbor) check(r verbs.RemoteRegion) ([]byte, error) {
	memory, ok := n.to.find(r.Address, r.RKey, int(min(r.Length, 1<<40)), all)
	if !ok {
		if n.to.broken("Map checks nothing") {
			return make([]byte, 64), nil
		}
		return nil, verbs.StatusRemoteAccess
	}
	return memory, nil
}

func (n *cardNeighbor) Map(r verbs.RemoteRegion) ([]byte, error) {
	n.to.mu.Lock()
	defer n.to.mu.Unlock()
	memory, err := n.check(r)
	if err == nil && n.to.broken("Map gives a copy") {
		memory = slices.Clone(memory)
	}
	return memory, err
}

func (n *cardNeighbor) Wake() {
	if !n.to.broken("neighbors cannot ring") {
		n.to.bell.Wake()
	}
}

func (n *cardNeighbor) at(r verbs.RemoteRegion, offset uint64, length int) ([]byte, error) {
	memory, err := n.check(r)
	if err != nil {
		return nil, err
	}
	if offset > uint64(len(memory)) || uint64(length) > uint64(len(memory))-offset {
		return nil, verbs.StatusRemoteAccess
	}
	return memory[offset:][:length], nil
}

func (n *cardNeighbor) ReadAt(into []byte, r verbs.RemoteRegion, offset uint64) error {
	n.to.mu.Lock()
	defer n.to.mu.Unlock()
	memory, err := n.at(r, offset, len(into))
	copy(into, memory)
	return err
}

func (n *cardNeighbor) WriteAt(from []byte, r verbs.RemoteRegion, offset uint64) error {
	n.to.mu.Lock()
	defer n.to.mu.Unlock()
	memory, err := n.at(r, offset, len(from))
	copy(memory, from)
	return err
}
