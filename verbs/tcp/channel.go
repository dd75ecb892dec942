package tcp

import (
	"sync"
	"sync/atomic"
	"time"
)

// channel is the event channel of the rank. A sleeper sleeps on the sockets, and on a descriptor of its own that Wake
// writes to. With one descriptor per sleeper, no sleeper can consume the wake-up of another.
type channel struct {
	device *device

	sleepers atomic.Int32
	// sequence counts the rings. It changes under mu, so that no ring falls between a sleeper's check of sequence and
	// its seat.
	sequence atomic.Uint32

	mu     sync.Mutex
	taken  []*seat
	free   []*seat
	closed bool
}

// closedNap is the longest sleep on a closed device, which has no descriptors and receives nothing.
const closedNap = time.Millisecond

// Prepare announces a sleeper. The announcement precedes the caller's loads, and Wake loads sleepers after the waker's
// stores; so one sees the other.
func (c *channel) Prepare() uint32 {
	c.sleepers.Add(1)
	return c.sequence.Load()
}

// Finish takes the announcement back.
func (c *channel) Finish() { c.sleepers.Add(-1) }

// Wake wakes all sleepers. It is a load if there is none.
func (c *channel) Wake() {
	if c.sleepers.Load() == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sequence.Add(1)
	for _, s := range c.taken {
		s.ring()
	}
}

// Sleep waits for a ring, for a socket, or until the device has to check its clock.
func (c *channel) Sleep(ticket uint32, limit time.Duration) {
	c.device.armBlocked()
	c.mu.Lock()
	if c.sequence.Load() != ticket || limit == 0 || c.device.wantedVisits.Load()+c.device.delayed.Load() != 0 {
		c.mu.Unlock()
		return
	}
	s, err := c.take()
	c.mu.Unlock()
	if err != nil {
		if limit < 0 || limit > closedNap {
			limit = closedNap
		}
		time.Sleep(limit)
		return
	}
	untilTick := c.device.untilTick()
	if untilTick >= 0 && (limit < 0 || untilTick < limit) {
		limit = untilTick
	}
	s.wait(&c.device.poller, limit)
	// Any connection may have something now, or the peers may need a check.
	c.device.lookSoon.Store(true)
	c.leave(s)
}

// take takes a seat. It fails when the device is closed or out of descriptors; the sleeper then polls instead.
func (c *channel) take() (*seat, error) {
	if c.closed {
		return nil, c.device.closedError("Sleep")
	}
	var s *seat
	if n := len(c.free); n > 0 {
		s, c.free = c.free[n-1], c.free[:n-1]
	} else {
		var err error
		if s, err = newSeat(); err != nil {
			return nil, err
		}
	}
	c.taken = append(c.taken, s)
	return s, nil
}

func (c *channel) leave(s *seat) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, t := range c.taken {
		if t == s {
			last := len(c.taken) - 1
			c.taken[i] = c.taken[last]
			c.taken[last] = nil
			c.taken = c.taken[:last]
			break
		}
	}
	s.hush()
	if c.closed {
		s.close()
		return
	}
	c.free = append(c.free, s)
}

// close wakes all sleepers and closes the free seats.
func (c *channel) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.sequence.Add(1)
	for _, s := range c.taken {
		s.ring()
	}
	for _, s := range c.free {
		s.close()
	}
	c.free = nil
}
