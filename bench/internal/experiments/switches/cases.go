package switches

import (
	"slices"

	"github.com/onesided/rma/bench/internal/device"
	"github.com/onesided/rma/bench/internal/plan"
	"github.com/onesided/rma/bench/internal/runner"
)

// A switchCase is a measurement that shows the effect of a switch.
type switchCase struct {
	// set is the switch with the value that is compared with its default. by is the rest of the command line.
	set    string
	device string
	by     []string
	cases  []string
}

// switchCases returns one case for each switch, in the order of toggles.All.
func switchCases() []switchCase {
	of := func(set, device string, cases ...string) switchCase {
		return switchCase{set: set, device: device, cases: cases}
	}
	unregistered := of("registered=off", device.SimulatedCard, "put_flush_lat:2048,1048576")
	transfers := of("transfer=copy", device.SimulatedCard, "put_flush_lat:65536,1048576")
	transfers.by = []string{"-set", "registered=off"}
	striped := of("striping=off", device.SimulatedCard, "put_flush_lat:1048576")
	striped.by = []string{"-rails", "2"}
	return []switchCase{
		of("copy=plain", device.Shm, "put_flush_lat:4096,65536"),
		of("kernels=plain", device.Shm, "acc_flush_lat:65536"),
		of("tls=on", device.TCP, "put_flush_lat:8,65536"),
		of("singleelement=on", device.Shm, "acc_flush_lat:8", "fop_lat"),
		of("sameop=on", device.TCP, "update_rate"),
		of("cardatomics=on", device.SimulatedCard, "fop_lat", "count_rate", "count_target_cpu"),
		of("immediate=on", device.Shm, "update_rate"),
		of("unordered=on", device.TCP, "update_rate"),
		unregistered, transfers,
		of("rings=on", device.SimulatedCard, "fop_lat"),
		of("hugepages=off", device.Shm, "hashtable_insert_rate", "update_rate"),
		of("pipes=off", device.Shm, "msg_lat:8,1024"),
		of("cells=off", device.Shm, "allreduce_lat:8", "bcast_lat:8"),
		of("staging=off", device.Shm, "allreduce_lat:1048576"),
		of("algorithm=plain", device.Shm, "allreduce_lat:65536"),
		of("defer=off", device.TCP, "scatter_rate", "fence_rate"),
		of("getsfirst=off", device.TCP, "mixed_rate"),
		of("interleave=off", device.TCP, "pattern16_bw:65536"),
		of("pack=off", device.TCP, "scatter_rate"),
		of("merge=off", device.TCP, "row_rate", "count_rate"),
		of("early=off", "sim:connectx-ddr-2009", "overlap_put_lat:1048576"),
		of("adapt=off", device.SimulatedCard, "pattern16_bw:1024"),
		of("collect=off", device.SimulatedCard, "fence_put_lat:8"),
		of("inline=off", device.SimulatedCard, "put_flush_lat:8"),
		of("standback=off", device.TCP, "halo_lat:16384"),
		striped,
		of("batches=off", device.TCP, "pattern16_bw:1024"),
		of("pollrecent=off", device.TCP, "put_flush_lat:8"),
		of("headerreads=off", device.TCP, "put_bw:65536"),
		of("fewsockets=off", device.TCP, "put_flush_lat:8"),
		of("copies=off", device.TCP, "put_flush_lat:1024"),
		of("reno=off", device.TCP, "put_bw:65536"),
		of("delayedacks=off", device.TCP, "msg_lat:8"),
	}
}

// options returns the options and the cases of the switchCase with its switch at a value.
func (e switchCase) options(set string, repeat string) (*runner.Options, *plan.Selection, error) {
	args := []string{"-device", e.device, "-repeat", repeat}
	return runner.Parse(slices.Concat(args, e.by, []string{"-set", set}, e.cases))
}
