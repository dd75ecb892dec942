package verbs

import "time"

// ChargerOf is the device if that is a Charger, and else one that charges nobody, for devices around
// others.
func ChargerOf(d Device) Charger {
	if c, ok := d.(Charger); ok {
		return c
	}
	return free{}
}

// RingPollerOf is the device if that is a RingPoller, and else one that charges nobody.
func RingPollerOf(d Device) RingPoller {
	if p, ok := d.(RingPoller); ok {
		return p
	}
	return free{}
}

// free is of devices in real time: work takes what it takes.
type free struct{}

func (free) Copied(int)                             {}
func (free) Takes(work time.Duration) time.Duration { return work }
func (free) Work(uint32, time.Duration)             {}
func (free) PollRings(int)                          {}
