package verbs

import (
	"context"
	"time"
)

// ChargerOf returns the device itself if it is a [Charger], and otherwise a Charger that charges nothing. Devices that
// wrap other devices use it.
func ChargerOf(d Device) Charger {
	if c, ok := d.(Charger); ok {
		return c
	}
	return free{}
}

// RingPollerOf returns the device itself if it is a [RingPoller], and otherwise a RingPoller that charges nothing.
func RingPollerOf(d Device) RingPoller {
	if p, ok := d.(RingPoller); ok {
		return p
	}
	return free{}
}

// ReserverOf returns the device itself if it is a [Reserver]. Otherwise it returns a Reserver that backs all memory
// when it is reserved.
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

// free is the Charger and RingPoller of a device in real time. Work takes as long as it takes.
type free struct{}

func (free) Copied(int)                             {}
func (free) Takes(work time.Duration) time.Duration { return work }
func (free) Work(uint32, time.Duration)             {}
func (free) PollRings(int)                          {}
