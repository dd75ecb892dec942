package tcp

import (
	"fmt"
	"time"

	"github.com/onesided/rma/verbs"
)

// health is what is known about whether the peer lives. Receiving and moving only set a flag; tick, which reads the
// clock, turns the flag into a time.
type health struct {
	received, moved, pinged                 bool
	receivedAt, movedAt, pingedAt, tickedAt time.Time
}

const (
	// ticks is how often in Options.Silence the device looks at its clock.
	ticks = 10
	// A gap between two ticks counts for at most Options.Silence/pauseDivisor. That exceeds the gaps of a rank that polls all the
	// time. It is not zero, so that a rank that polls seldom still gives up a dead peer.
	pauseDivisor = 5
)

func (h *health) begin(now time.Time) { *h = health{receivedAt: now, movedAt: now, tickedAt: now} }

// pass excludes the part of a gap between two ticks that exceeds most from the peer's time. This process was stopped in the gap, or
// its machine was, on which the peer may run, too.
func (h *health) pass(now time.Time, most time.Duration) {
	if more := now.Sub(h.tickedAt) - most; more > 0 {
		h.receivedAt, h.movedAt, h.pingedAt = h.receivedAt.Add(more), h.movedAt.Add(more), h.pingedAt.Add(more)
	}
	h.tickedAt = now
}

// tick checks the peer. A rank that has not polled for long first sends a ping, and gives the peer time to respond.
func (c *connection) tick(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h, silence := &c.health, c.device.silence
	switch c.phase {
	case phaseDialing, phaseClosed:
		return
	case phaseShutdown:
		if now.Sub(h.receivedAt) >= silence {
			c.shut()
		}
		return
	}
	h.pass(now, silence/pauseDivisor)
	if h.received {
		h.received, h.pinged, h.receivedAt = false, false, now
	}
	if h.moved || !c.stuck() {
		h.moved, h.movedAt = false, now
	}
	quiet := now.Sub(h.receivedAt)
	switch {
	case h.pinged && quiet >= silence && now.Sub(h.pingedAt) >= silence/2:
		c.giveUp("the peer was silent", quiet)
	case now.Sub(h.movedAt) >= silence:
		// The peer may have read since this side last tried.
		if c.transmit(); !h.moved && c.stuck() {
			c.giveUp("the peer has read nothing", now.Sub(h.movedAt))
		}
	case !h.pinged && quiet >= silence/3:
		h.pinged, h.pingedAt = true, now
		c.out.ping = true
		c.transmit()
	}
}

// giveUp ends the connection to a peer that does not respond. The first request on its way completes with
// StatusRetryExceeded.
func (c *connection) giveUp(what string, after time.Duration) {
	if q := c.pair; q != nil && q.built > 0 {
		q.finish(verbs.StatusRetryExceeded)
	}
	c.fail(fmt.Errorf("tcp: %s: %s for %v: %w", c.peer, what, after.Round(time.Second/10), verbs.ErrPeerGone), shutdownNow)
}
