package jobtest

import (
	"time"

	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/shm"
	"github.com/onesided/rma/verbs/tcp"
	"github.com/onesided/rma/world"
)

// OptionsApart have ranks that are goroutines map no memory of each other.
func OptionsApart() []world.Option {
	return over(func(d verbs.Device) verbs.Device { return d })
}

// OptionsCards have ranks that are goroutines map no memory of each other and have network cards with
// atomics, which are coherent with processors or not.
func OptionsCards(coherent bool) []world.Option {
	return over(func(d verbs.Device) verbs.Device { return &atomicCard{d, coherent} })
}

// OptionsCardsOfProcesses have ranks that are processes have such cards, beside memory that they share.
func OptionsCardsOfProcesses(coherent bool) func() ([]world.Option, error) {
	return func() ([]world.Option, error) {
		return []world.Option{world.WithNetwork(func(int) (verbs.Device, error) {
			device, err := tcp.Open(tcp.Options{})
			return &atomicCard{device, coherent}, err
		})}, nil
	}
}

// An apartDevice hides what a device can do beside being one. Its costs are usual ones, and not
// measured: what goes in which way does not depend on the machine, nor on the race detector.
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

// over has ranks use devices in place of those of their process.
func over(as func(verbs.Device) verbs.Device) []world.Option {
	fabric := shm.NewFabric()
	return []world.Option{world.WithDevice("tcp"), world.WithNetwork(func(int) (verbs.Device, error) {
		device, err := fabric.Open()
		return as(apartDevice{device}), err
	})}
}

// An atomicCard is a device that passes for a card with atomics, and maps nothing.
type atomicCard struct {
	verbs.Device
	coherent bool
}

func (c *atomicCard) Attributes() verbs.Attributes {
	a := c.Device.Attributes()
	a.CardAtomics, a.CoherentAtomics = true, c.coherent
	return a
}
