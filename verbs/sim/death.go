package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/onesided/rma/verbs"
)

// An end is the end of a killed rank: when Watch reports it, and with what cause.
type end struct {
	noticed time.Duration
	cause   error
	power   bool
}

// Killed reports whether the rank was killed, or has lost power.
func (d *Device) Killed() bool {
	d.sim.mu.Lock()
	defer d.sim.mu.Unlock()
	return d.dead
}

// die ends the devices of the rank, and its tasks, without notice to any peer.
func (d *Device) die(power bool) {
	s := d.sim
	for _, other := range s.devices {
		if other.first == d.first {
			other.fall(power)
		}
	}
	for _, t := range s.tasks {
		if t.device != nil && t.device.first == d.first {
			s.kill(t)
		}
	}
}

// fall ends the device, if it is not closed already.
func (d *Device) fall(power bool) {
	s := d.sim
	if d.closed {
		d.dead = true
		return
	}
	e := end{noticed: s.now + s.profile.Notice, power: power}
	what := "the rank was killed"
	if power {
		e.noticed, what = s.now+s.profile.Silence, "the rank has lost power"
	}
	e.cause = fmt.Errorf("sim: %s: %s: %w", d.address, what, verbs.ErrPeerGone)
	s.dead[d.address] = e
	delete(s.open, d.address)
	d.closed, d.dead = true, true
	for _, q := range slices.Clone(d.pairs) {
		q.destroy()
	}
	for _, r := range d.requests {
		r.(*connectionRequest).from.ignore()
	}
	d.requests = nil
	for _, w := range d.watches {
		w.cause = e.cause
		s.schedule(e.noticed, w.by.lane, evDeath).what = w
	}
	d.watches = nil
	d.forget()
}

// unanswered returns the error of a peer that has not responded for a time.
func unanswered(what string, limit time.Duration) error {
	return fmt.Errorf("sim: %s: no response for %v: %w: %w", what, limit, verbs.StatusRetryExceeded, verbs.ErrPeerGone)
}

// exhaust makes the sender of a message that found no receive give up, after as many tries as a card makes that does
// not try for ever.
func (q *queuePair) exhaust(number uint64) {
	q.device.exhausting--
	q.rejected = true
	s := q.device.sim
	q.peer.report(Event{Kind: Starved, At: s.now, Until: s.now, Opcode: q.peer.request(number).Opcode, Request: q.peer.request(number).ID})
	e := s.schedule(s.now+starvedTries*s.profile.starved(), q.lane, evExhausted)
	e.pair, e.number = q.peer, number
}

// starvedTries is the largest finite number of tries that a queue pair can be set to (IBTA, rnr_retry).
const starvedTries = 6
