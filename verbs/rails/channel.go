package rails

import (
	"sync"
	"time"

	"github.com/onesided/rma/verbs"
)

// channel is where the rank sleeps: on that of rail 0, which the others' ring.
type channel struct {
	device *device
	first  verbs.CompletionChannel
	ears   []*ear

	// mu guards what follows, and the ears' tickets and listening.
	mu       sync.Mutex
	sleepers int
	closed   bool
}

// An ear listens to the channel of another rail for those who sleep on the first. Each Sleep has it
// listen until that channel rings, which wakes all who sleep then. It listens on while they poll and
// sleep again and it has not rung, so that to sleep again and again wakes no goroutine. Once it has
// rung it waits for the next Sleep: a rail with something to poll for, such as a socket with bytes,
// keeps nobody asleep, and the ear would ring all the time until it is polled.
type ear struct {
	channel verbs.CompletionChannel
	ticket  uint32
	// listening: the goroutine sleeps on the channel, or is about to. It has announced itself
	// there then; else the ear has while there are sleepers.
	listening bool
	begin     chan struct{}
}

// init finds the channels.
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

// open has the ears ready to listen.
func (c *channel) open() {
	for _, e := range c.ears {
		go c.listen(e)
	}
}

// Prepare announces a sleeper on all rails, and has the poll that follows look at all.
func (c *channel) Prepare() uint32 {
	c.device.soon.Store(true)
	if len(c.ears) > 0 {
		c.mu.Lock()
		if c.sleepers++; c.sleepers == 1 {
			for _, e := range c.ears {
				if !e.listening {
					e.ticket = e.channel.Prepare()
				}
			}
		}
		c.mu.Unlock()
	}
	return c.first.Prepare()
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
			e.channel.Finish()
		}
	}
}

// Ring wakes all sleepers.
func (c *channel) Ring() { c.first.Ring() }

// listen wakes sleepers when another rail's channel is rung. Before it does the ear is announced
// there anew, and free to be begun: what comes later is heard by the next Sleep of those who wake.
func (c *channel) listen(e *ear) {
	for range e.begin {
		if c.hears(e) {
			c.first.Ring()
		}
	}
}

// hears waits for a ring, and tells whether somebody sleeps that has to be woken.
func (c *channel) hears(e *ear) bool {
	e.channel.Sleep(e.ticket, -1)
	c.mu.Lock()
	defer c.mu.Unlock()
	e.channel.Finish()
	e.listening = false
	if c.sleepers == 0 || c.closed {
		return false
	}
	e.ticket = e.channel.Prepare()
	return true
}

// close ends the goroutines.
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
