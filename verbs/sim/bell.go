package sim

import (
	"runtime"
	"time"
)

// A bell is the completion channel of a device. In virtual time a rank need not look
// again and again for what its peers write into its memory: whatever the card brings
// rings.
type bell struct {
	device *Device
	rings  uint32
	// sleeper is who has slept for longest, and has the others behind.
	sleeper *task
	// announced are those between Prepare and Finish.
	announced int
}

// Prepare gives a ticket for Sleep.
func (b *bell) Prepare() uint32 {
	s := b.device.sim
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dying() {
		return b.rings
	}
	b.announced++
	return b.rings
}

// Finish takes the announcement back.
func (b *bell) Finish() {
	s := b.device.sim
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.dying() {
		b.announced--
	}
}

// Sleep gives the turn away until the bell is rung, or the limit is over on the caller's
// clock. Outside of Run it lets events happen until then. When there are none it waits
// for as long in real time, because other goroutines may be about to do something.
func (b *bell) Sleep(ticket uint32, limit time.Duration) { b.pass(Slept, ticket, limit) }

// Work is Sleep of the channel, but that the processor is said to compute.
func (d *Device) Work(ticket uint32, limit time.Duration) { d.bell.pass(Computed, ticket, limit) }

// pass lets time pass in which the processor does what an event says.
func (b *bell) pass(doing EventKind, ticket uint32, limit time.Duration) {
	s := b.device.sim
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dying() {
		// It is being unwound, and this is where it ends.
		runtime.Goexit()
	}
	local, until := *s.local(), forever
	if limit >= 0 && limit < forever-local {
		until = local + limit
	}
	if s.current == nil {
		b.sleepOutside(ticket, until)
		return
	}
	if b.rings == ticket {
		t := s.current
		s.wait(b, until)
		b.device.reportTask(doing, local, t.local, 0)
	}
}

func (b *bell) sleepOutside(ticket uint32, until time.Duration) {
	s := b.device.sim
	for b.rings == ticket {
		if s.step(until) {
			continue
		}
		if b.idle(ticket, until) {
			s.outside = max(s.outside, until)
			s.now = max(s.now, until)
			break
		}
	}
	s.local()
}

// idle waits in real time for a ring or an event, and tells whether the limit was over
// before.
func (b *bell) idle(ticket uint32, until time.Duration) (over bool) {
	s := b.device.sim
	if until < forever {
		timer := time.AfterFunc(until-*s.local(), func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			over = true
			s.idlers.Broadcast()
		})
		defer timer.Stop()
	}
	scheduled := s.events.ordered
	for b.rings == ticket && s.events.ordered == scheduled && !over {
		s.idle++
		s.idlers.Wait()
		s.idle--
	}
	return over
}

// Ring wakes all sleepers, at the time of whoever calls. When none is announced it does
// nothing: one who announces itself later looks later, too, and finds what was rung for,
// even if its clock is behind.
func (b *bell) Ring() {
	s := b.device.sim
	s.mu.Lock()
	defer s.mu.Unlock()
	if b.announced == 0 || s.dying() {
		return
	}
	if at := *s.local(); s.current != nil && at > s.now {
		s.schedule(at, b.device.lane, evRing).what = b.device
		return
	}
	b.ring()
}

// ring wakes all sleepers now.
func (b *bell) ring() {
	s := b.device.sim
	b.rings++
	for b.sleeper != nil {
		s.wake(b.sleeper)
	}
	if s.idle > 0 {
		s.idlers.Broadcast()
	}
}

// remember puts a sleeper behind the others.
func (b *bell) remember(t *task) {
	last := &b.sleeper
	for *last != nil {
		last = &(*last).behind
	}
	*last = t
}

// forget has a sleeper leave, of whom the others keep their order.
func (b *bell) forget(t *task) {
	for at := &b.sleeper; *at != nil; at = &(*at).behind {
		if *at == t {
			*at, t.behind = t.behind, nil
			return
		}
	}
}
