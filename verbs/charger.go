package verbs

import (
	"context"
	"time"
)

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

// ReserverOf is the device if that is a Reserver, and else one all of whose memory is backed at once.
func ReserverOf(d Device) Reserver {
	if r, ok := d.(Reserver); ok {
		return r
	}
	return backedAtOnce{d}
}

type backedAtOnce struct{ device Device }

func (b backedAtOnce) ReserveMemory(n int) ([]byte, error) { return b.device.AllocateMemory(n) }
func (backedAtOnce) BackMemory(_ context.Context, memory []byte) (int, error) {
	return len(memory), nil
}

// free is of devices in real time: work takes what it takes.
type free struct{}

func (free) Copied(int)                             {}
func (free) Takes(work time.Duration) time.Duration { return work }
func (free) Work(uint32, time.Duration)             {}
func (free) PollRings(int)                          {}
