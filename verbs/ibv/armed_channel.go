//go:build ibverbs && cgo && linux

package ibv

import "github.com/onesided/rma/internal/eventchannel"

// An armedChannel is the event channel of the rank. A goroutine waits for the card's events and rings it.
//
// A sleeper announces itself, and then arms every completion queue that is not armed, before it checks for completions.
// So later completions generate an event.
type armedChannel struct {
	*eventchannel.Channel
	// arm arms the queues.
	arm func()
}

func newArmedChannel(arm func()) *armedChannel { return &armedChannel{eventchannel.New(), arm} }

// Prepare announces a sleeper.
func (c *armedChannel) Prepare() uint32 {
	ticket := c.Channel.Prepare()
	c.arm()
	return ticket
}

// Wake wakes all sleepers. A sleeper's announcement precedes its loads, and Wake loads the announcement after the
// waker's stores; so one sees the other.
func (c *armedChannel) Wake() { c.WakeIfSleeping() }
