package channel

import (
	"time"

	"github.com/onesided/rma/verbs"
)

// SetOf returns a polling set for a rank over a device, or nil if a ring gains nothing there. That is so if the peer's
// processor places what is written. It is also so if serving a message takes no longer than polling a ring and the
// second write of a device without OrderedWrites.
func SetOf(device verbs.Device, budget time.Duration) *Set {
	_, served := device.(verbs.Server)
	if served {
		return nil
	}
	costs := device.Costs()
	if costs.PollRing == 0 {
		costs.PollRing = pollTime()
	}
	instead := costs.PollRing
	if !device.Attributes().OrderedWrites {
		instead += costs.Post + costs.Gap
	}
	if costs.Serve <= instead {
		return nil
	}
	return NewSet(budget, costs.PollRing)
}
