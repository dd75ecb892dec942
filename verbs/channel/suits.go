package channel

import (
	"time"

	"github.com/onesided/rma/verbs"
)

// SetOf is a polling set for a rank over a device, nil where messages do not go faster by a ring: where
// the processor of the peer places what is written, or where it takes no longer to serve a message than to
// look at a ring, and to post a second write if nothing is promised of the order within one.
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
