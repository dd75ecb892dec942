package channel

import (
	"time"

	"github.com/onesided/rma/verbs"
)

// SetOf returns a polling set for a rank over a device, nil where a ring brings nothing. That is where the peer's
// processor places what is written, and where a message takes no longer to serve than a look at a ring, together
// with the second write that a device without OrderedWrites needs.
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
