package main

import "slices"

// An exhibit is a measurement that shows the effect of a switch.
type exhibit struct {
	// set is the switch with the value that is compared with its default. by is the rest of the command line.
	set    string
	device string
	by     []string
	cases  []string
}

// exhibits returns one exhibit for each switch, in the order of toggles.
func exhibits() []exhibit {
	of := func(set, device string, cases ...string) exhibit {
		return exhibit{set: set, device: device, cases: cases}
	}
	untold := of("registered=off", simulatedCard, "put_flush_lat:2048,1048576")
	transfers := of("transfer=copy", simulatedCard, "put_flush_lat:65536,1048576")
	transfers.by = []string{"-set", "registered=off"}
	striped := of("striping=off", simulatedCard, "put_flush_lat:1048576")
	striped.by = []string{"-rails", "2"}
	return []exhibit{
		of("copy=plain", deviceShm, "put_flush_lat:4096,65536"),
		of("kernels=plain", deviceShm, "acc_flush_lat:65536"),
		of("tls=on", deviceTCP, "put_flush_lat:8,65536"),
		of("singleelement=on", deviceShm, "acc_flush_lat:8", "fop_lat"),
		of("sameop=on", deviceTCP, "update_rate"),
		of("cardatomics=on", simulatedCard, "fop_lat", "count_rate"),
		of("immediate=on", deviceShm, "update_rate"),
		of("unordered=on", deviceTCP, "update_rate"),
		untold, transfers,
		of("rings=on", simulatedCard, "fop_lat"),
		of("hugepages=off", deviceShm, "hashtable_insert_rate", "update_rate"),
		of("pipes=off", deviceShm, "msg_lat:8,1024"),
		of("notes=off", deviceShm, "allreduce_lat:8", "bcast_lat:8"),
		of("staging=off", deviceShm, "allreduce_lat:1048576"),
		of("algorithm=plain", deviceShm, "allreduce_lat:65536"),
		of("defer=off", deviceTCP, "scatter_rate", "fence_rate"),
		of("getsfirst=off", deviceTCP, "mixed_rate"),
		of("interleave=off", deviceTCP, "pattern16_bw:65536"),
		of("pack=off", deviceTCP, "scatter_rate"),
		of("merge=off", deviceTCP, "row_rate", "count_rate"),
		of("early=off", deviceTCP, "overlap_put_lat:1048576"),
		of("adapt=off", deviceTCP, "pscw_put_lat:8"),
		of("collect=off", simulatedCard, "fence_put_lat:8"),
		of("inline=off", simulatedCard, "put_flush_lat:8"),
		of("standback=off", deviceTCP, "halo_lat:16384"),
		striped,
		of("batches=off", deviceTCP, "pattern16_bw:1024"),
		of("favour=off", deviceTCP, "put_flush_lat:8"),
		of("dwelling=off", deviceTCP, "put_flush_lat:8"),
		of("headerreads=off", deviceTCP, "put_bw:65536"),
		of("fewsockets=off", deviceTCP, "put_flush_lat:8"),
		of("copies=off", deviceTCP, "put_flush_lat:1024"),
		of("reno=off", deviceTCP, "put_bw:65536"),
		of("riding=off", deviceTCP, "msg_lat:8"),
	}
}

// options returns the options and the cases of the exhibit with its switch at a value.
func (e exhibit) options(set string, repeat string) (*options, *request, error) {
	args := []string{"-device", e.device, "-repeat", repeat}
	return parseJob(slices.Concat(args, e.by, []string{"-set", set}, e.cases))
}
