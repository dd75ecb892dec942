package rails

import (
	"sync"
	"time"

	"github.com/onesided/rma/verbs"
)

// channel is the sleeping place of all rails: that of rail 0, which is rung when another rail's is.
type channel struct {
	device *device
	first  verbs.CompletionChannel
	ears   []*ear

	// mu guards what follows, and the ears' fields but channel and begin.
	mu       sync.Mutex
	sleepers int
	closed   bool
}

// An ear listens to the channel of another rail while somebody sleeps on the first. Sleep has it listen until its
// channel rings, which wakes all sleepers. It goes on listening while they poll and sleep again, so that sleeping again
// and again wakes no goroutine. Once its channel has rung it waits for the next Sleep: a rail that has something to poll
// for, such as a socket with bytes, rings until it is polled.
type ear struct {
	channel verbs.CompletionChannel
	begin   chan struct{}
	// announced: there was a Prepare of channel, of which ticket is, and no Finish yet. That is so while the ear listens or
	// there are sleepers.
	announced bool
	ticket    uint32
	// listening: the goroutine sleeps on channel, or is about to.
	listening bool
}

// announce announces the ear on its channel.
func (e *ear) announce() {
	if !e.announced {
		e.announced, e.ticket = true, e.channel.Prepare()
	}
}

// withdraw takes the announcement back.
func (e *ear) withdraw() {
	if e.announced {
		e.announced = false
		e.channel.Finish()
	}
}

// init finds the channels of the rails.
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
		c.ears = append(c.ears, &ear{channel: other, begin: make(chan struct{}, 1)})
	}
	return nil
}

// open starts the goroutines of the ears.
func (c *channel) open() {
	for _, e := range c.ears {
		go c.listen(e)
	}
}

// Prepare announces a sleeper on all rails, and has the next poll look at all of them. It asks for that poll last: had it
// asked before, the poll of another goroutine could have answered it, and a completion that came between that and the
// announcement would neither ring nor be looked for.
func (c *channel) Prepare() uint32 {
	if len(c.ears) > 0 {
		c.mu.Lock()
		c.sleepers++
		for _, e := range c.ears {
			e.announce()
		}
		c.mu.Unlock()
	}
	ticket := c.first.Prepare()
	c.device.soon.Store(true)
	return ticket
}

// Sleep sleeps on rail 0.
func (c *channel) Sleep(ticket uint32, limit time.Duration) {
	if len(c.ears) > 0 && limit != 0 {
		c.mu.Lock()
		for _, e := range c.ears {
			if !e.listening && !c.closed && c.sleepers > 0 {
				e.listening = true
				e.begin <- struct{}{}
			}
		}
		c.mu.Unlock()
	}
	c.first.Sleep(ticket, limit)
}

// Finish takes the announcement back.
func (c *channel) Finish() {
	c.first.Finish()
	if len(c.ears) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sleepers--; c.sleepers > 0 {
		return
	}
	for _, e := range c.ears {
		if !e.listening {
			e.withdraw()
		}
	}
}

// Ring wakes all sleepers.
func (c *channel) Ring() { c.first.Ring() }

// listen rings the first channel when the ear's has been rung. By then the ear is announced anew and can be begun, so the
// next Sleep hears what comes later.
func (c *channel) listen(e *ear) {
	for range e.begin {
		if c.hears(e) {
			c.first.Ring()
		}
	}
}

// hears waits for a ring, and reports whether somebody sleeps who must be woken.
func (c *channel) hears(e *ear) bool {
	e.channel.Sleep(e.ticket, -1)
	c.mu.Lock()
	defer c.mu.Unlock()
	e.withdraw()
	e.listening = false
	if c.sleepers == 0 || c.closed {
		return false
	}
	e.announce()
	return true
}

// close ends the goroutines of the ears.
func (c *channel) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	c.closed = true
	for _, e := range c.ears {
		close(e.begin)
		e.channel.Ring()
	}
}
