//go:build ibverbs && cgo && linux

package ibv

import "github.com/onesided/rma/internal/eventchannel"

// An armedBell is where the rank sleeps. A goroutine waits for the card's events and rings.
//
// Whoever announces a sleep has every completion queue armed that is not, before he looks
// whether something has come: what comes afterwards makes an event.
type armedBell struct {
	*eventchannel.Bell
	// arm arms the queues.
	arm func()
}

func newBell(arm func()) *armedBell { return &armedBell{eventchannel.New(), arm} }

// Prepare announces a sleeper.
func (b *armedBell) Prepare() uint32 {
	ticket := b.Bell.Prepare()
	b.arm()
	return ticket
}

// Ring wakes all sleepers. A sleeper is announced before he looks for what the ringer has
// done before.
func (b *armedBell) Ring() { b.RingIfHeard() }
