package tcp

import (
	"time"

	"github.com/onesided/rma/verbs"
)

// Costs returns the costs of the device. Network costs are typical values over loopback, because those between hosts
// depend on the network. Copy costs are measured on this machine.
func (d *device) Costs() verbs.Costs {
	costs := d.memory.Costs()
	costs.Post, costs.Gap = 1500*time.Nanosecond, 200*time.Nanosecond
	costs.Serve = 900 * time.Nanosecond
	costs.Latency, costs.ReadLatency = 4*time.Microsecond, 8*time.Microsecond
	costs.Bandwidth, costs.DuplexBandwidth = 4e9, 5e9
	costs.RegisterPage, costs.DeregisterPage = 0, 0
	return costs
}
