package jobtest

import (
	"time"

	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/shm"
	"github.com/onesided/rma/verbs/tcp"
	"github.com/onesided/rma/world"
)

// OptionsApart returns options for ranks that are goroutines but map no memory of each other.
func OptionsApart() []world.Option {
	return over(func(d verbs.Device) verbs.Device { return d })
}

// OptionsCards returns options for ranks that are goroutines, map no memory of each other, and have network cards
// with atomics. coherent says whether the cards are coherent with processors.
func OptionsCards(coherent bool) []world.Option {
	return over(func(d verbs.Device) verbs.Device { return &atomicCard{d, coherent} })
}

// OptionsCardsOfProcesses returns options for ranks that are processes with such cards, beside memory that they
// share.
func OptionsCardsOfProcesses(coherent bool) func() ([]world.Option, error) {
	return func() ([]world.Option, error) {
		return []world.Option{world.WithNetwork(func(int) (verbs.Device, error) {
			device, err := tcp.Open(tcp.Options{})
			return &atomicCard{device, coherent}, err
		})}, nil
	}
}

// An apartDevice hides the optional abilities of a device. Its costs are fixed and not measured. So the choice of
// protocols depends neither on the machine nor on the race detector.
type apartDevice struct{ verbs.Device }

func (apartDevice) Costs() verbs.Costs {
	const bandwidth = 10e9
	return verbs.Costs{
		Post: 50 * time.Nanosecond, Gap: 50 * time.Nanosecond,
		Latency: 100 * time.Nanosecond, ReadLatency: 100 * time.Nanosecond,
		Bandwidth: bandwidth, DuplexBandwidth: 2 * bandwidth,
		CopyLatency: 10 * time.Nanosecond, CopyBandwidth: bandwidth,
		Register: 100 * time.Nanosecond, Deregister: 100 * time.Nanosecond,
	}
}

// over returns an option that replaces the devices of the ranks.
func over(as func(verbs.Device) verbs.Device) []world.Option {
	fabric := shm.NewFabric()
	return []world.Option{world.WithDevice("tcp"), world.WithNetwork(func(int) (verbs.Device, error) {
		device, err := fabric.Open()
		return as(apartDevice{device}), err
	})}
}

// An atomicCard is a device that appears as a card with atomics, and maps nothing.
type atomicCard struct {
	verbs.Device
	coherent bool
}

func (c *atomicCard) Attributes() verbs.Attributes {
	a := c.Device.Attributes()
	a.CardAtomics, a.CoherentAtomics = true, c.coherent
	return a
}
