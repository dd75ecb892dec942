package rails

import (
	"sync"
	"time"

	"github.com/onesided/rma/verbs"
)

// channel is the event channel of all rails. It is the channel of rail 0, and rings when the channel of another rail
// rings.
type channel struct {
	device *device
	first  verbs.CompletionChannel
	relays []*relay

	// mu guards the fields below, and the relays' fields except channel and begin.
	mu       sync.Mutex
	sleepers int
	closed   bool
}

// A relay is a goroutine that sleeps on the channel of another rail, and wakes the sleepers of rail 0 when it rings.
// The first Sleep starts it. It continues to sleep while they poll and sleep again, so that these calls wake no
// goroutine. After its channel has rung, the next Sleep starts it again: a rail with something to poll for, such as a
// socket with bytes, rings until it is polled.
type relay struct {
	channel verbs.CompletionChannel
	begin   chan struct{}
	// announced: Prepare of channel returned ticket, and Finish was not called yet. It is set while the relay sleeps or
	// there are sleepers.
	announced bool
	ticket    uint32
	// sleeping: the goroutine sleeps on channel, or is about to.
	sleeping bool
}

// announce announces the relay on its channel.
func (r *relay) announce() {
	if !r.announced {
		r.announced, r.ticket = true, r.channel.Prepare()
	}
}

// withdraw takes the announcement back.
func (r *relay) withdraw() {
	if r.announced {
		r.announced = false
		r.channel.Finish()
	}
}

// init collects the channels of the rails.
func (c *channel) init(d *device) error {
	c.device, c.first = d, d.rails[0].Channel()
	for i, rail := range d.rails[1:] {
		other := rail.Channel()
		if other == c.first {
			continue
		}
		if d.attributes.Virtual {
			return argumentError("New: rail %d is in virtual time and has a channel of its own; open it with OpenRail of rail 0", i+1)
		}
		c.relays = append(c.relays, &relay{channel: other, begin: make(chan struct{}, 1)})
	}
	return nil
}

// open starts the goroutines of the relays.
func (c *channel) open() {
	for _, r := range c.relays {
		go c.relay(r)
	}
}

// Prepare announces a sleeper on all rails, and then makes the next poll check all of them. In the other order, a
// concurrent poll could check before the announcement. A completion between the two would neither ring nor be found.
func (c *channel) Prepare() uint32 {
	if len(c.relays) > 0 {
		c.mu.Lock()
		c.sleepers++
		for _, r := range c.relays {
			r.announce()
		}
		c.mu.Unlock()
	}
	ticket := c.first.Prepare()
	c.device.soon.Store(true)
	return ticket
}

// Sleep sleeps on the channel of rail 0.
func (c *channel) Sleep(ticket uint32, limit time.Duration) {
	if len(c.relays) > 0 && limit != 0 {
		c.mu.Lock()
		for _, r := range c.relays {
			if !r.sleeping && !c.closed && c.sleepers > 0 {
				r.sleeping = true
				r.begin <- struct{}{}
			}
		}
		c.mu.Unlock()
	}
	c.first.Sleep(ticket, limit)
}

// Finish takes the announcement of Prepare back.
func (c *channel) Finish() {
	c.first.Finish()
	if len(c.relays) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sleepers--; c.sleepers > 0 {
		return
	}
	for _, r := range c.relays {
		if !r.sleeping {
			r.withdraw()
		}
	}
}

// Wake wakes all sleepers.
func (c *channel) Wake() { c.first.Wake() }

// relay rings the first channel whenever the relay's has rung. Before that, the relay is announced again and can be
// started, so that the next Sleep misses nothing.
func (c *channel) relay(r *relay) {
	for range r.begin {
		if c.await(r) {
			c.first.Wake()
		}
	}
}

// await sleeps until the relay's channel rings, and reports whether there are sleepers to wake.
func (c *channel) await(r *relay) bool {
	r.channel.Sleep(r.ticket, -1)
	c.mu.Lock()
	defer c.mu.Unlock()
	r.withdraw()
	r.sleeping = false
	if c.sleepers == 0 || c.closed {
		return false
	}
	r.announce()
	return true
}

// close ends the goroutines of the relays.
func (c *channel) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	c.closed = true
	for _, r := range c.relays {
		close(r.begin)
		r.channel.Wake()
	}
}
