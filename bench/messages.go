package main

import (
	"fmt"
	"strings"

	"github.com/onesided/rma/bench/internal/device"
	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/ibv"
	"github.com/onesided/rma/verbs/shm"
	"github.com/onesided/rma/verbs/tcp"
	"github.com/onesided/rma/world"
)

// openBeside opens another device of the kind by which the processes of a job on this machine reach each other. Over
// TCP it leaves out some optimizations.
func openBeside(w *world.World, without tcp.Optimization) (verbs.Device, error) {
	kind, _, _ := strings.Cut(job.Of(w).Device().Attributes().Name, ":")
	switch kind {
	case device.Shm:
		return shm.Open(shm.Options{})
	case device.TCP:
		return tcp.Open(tcp.Options{Without: without})
	case device.IBV:
		return ibv.Open(ibv.FromEnvironment())
	}
	return nil, fmt.Errorf("bench: messages go over %s, %s or %s, and the ranks use %s", device.Shm, device.TCP, device.IBV, kind)
}
