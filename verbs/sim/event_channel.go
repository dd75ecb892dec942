package sim

import (
	"runtime"
	"time"
)

// An eventChannel is the event channel of a device. In virtual time a rank need not poll its memory for what peers
// write: everything that the card brings rings it.
type eventChannel struct {
	device *Device
	rings  uint32
	// sleeper is the task that has slept longest. The others follow it by nextSleeper.
	sleeper *task
	// announced is the number of callers between Prepare and Finish.
	announced int
}

// Prepare returns a ticket for Sleep.
func (b *eventChannel) Prepare() uint32 {
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
func (b *eventChannel) Finish() {
	s := b.device.sim
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.dying() {
		b.announced--
	}
}

// Sleep yields until the channel rings, or until the limit is over on the caller's clock. Outside Run it lets events
// happen until then. If there are none it waits that long in real time, because other goroutines may be about to act.
func (b *eventChannel) Sleep(ticket uint32, limit time.Duration) { b.pass(Slept, ticket, limit) }

// Work is Sleep of the channel, reported as computation of the processor.
func (d *Device) Work(ticket uint32, limit time.Duration) { d.channel.pass(Computed, ticket, limit) }

// pass lets time pass. doing is what the processor is reported to do.
func (b *eventChannel) pass(doing EventKind, ticket uint32, limit time.Duration) {
	s := b.device.sim
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dying() {
		// The task is being unwound and ends here.
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

func (b *eventChannel) sleepOutside(ticket uint32, until time.Duration) {
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

// idle waits in real time for a ring or an event, and reports whether the limit was over before.
func (b *eventChannel) idle(ticket uint32, until time.Duration) (over bool) {
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

// Wake wakes all sleepers, at the caller's time. If none is announced it does nothing. A caller that announces itself
// later also checks later, and finds what the ring was for, even if its clock is behind.
func (b *eventChannel) Wake() {
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
	b.wake()
}

// wake wakes all sleepers now.
func (b *eventChannel) wake() {
	s := b.device.sim
	b.rings++
	for b.sleeper != nil {
		s.wake(b.sleeper)
	}
	if s.idle > 0 {
		s.idlers.Broadcast()
	}
}

// remember adds a sleeper after the others.
func (b *eventChannel) remember(t *task) {
	last := &b.sleeper
	for *last != nil {
		last = &(*last).nextSleeper
	}
	*last = t
}

// forget removes a sleeper. The others keep their order.
func (b *eventChannel) forget(t *task) {
	for at := &b.sleeper; *at != nil; at = &(*at).nextSleeper {
		if *at == t {
			*at, t.nextSleeper = t.nextSleeper, nil
			return
		}
	}
}
