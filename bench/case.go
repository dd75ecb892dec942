package main

import (
	"context"
	"slices"

	"github.com/onesided/rma/bench/internal/stats"
)

// A step is one iteration of a case's loop on one rank; n is the cell's size.
type step func(ctx context.Context, b *board, n int) error

// A scene is the synchronization that surrounds a case.
type scene int

const (
	passive    scene = iota // every rank holds LockAll
	fence                   // a fence epoch is open
	pscw                    // none: the steps start, complete, post and wait
	tables                  // no window: the steps work on a hash table
	collective              // no window: every rank runs the step
	messages                // no window: ranks 0 and 1 send each other messages
	alone                   // the case makes its own windows; its size is the number of ranks
	raw                     // no library: two processes with one socket between them
)

// A benchCase is one kind of measurement. Each of its sizes is a cell.
type benchCase struct {
	name  string
	unit  string
	about string
	scene scene

	// sizes are measured unless others are requested. Other sizes are allowed up to limit, in multiples of each; a
	// limit of 0 allows none.
	sizes []int
	limit int
	each  int

	// origin is the step of rank 0 and target that of the others. It is nil for ranks that only wait in the barrier.
	origin, target step
	iterations     func(size int) int
	// reach is nil for a case without window and buffer.
	reach reach
	// value converts the seconds of one step into the unit.
	value func(seconds float64, size int) float64

	// measure runs a case whose scene is alone. It returns one value a repeat; those of rank 0 count.
	measure func(ctx context.Context, r *caseRank) ([]float64, error)
	// sample does that for a case with a board whose iterations are timed one by one.
	sample func(ctx context.Context, r *caseRank, b *board, n int) ([]float64, error)
	// prepare prepares every rank for a loop of that many iterations, and is not timed.
	prepare func(ctx context.Context, b *board, turns, n int) error
	// ofTarget makes the processor time of rank 1's process during a loop count, and not the time on rank 0's clock.
	ofTarget bool
	// own is set if the peers' programs do not have the case.
	own bool
	// socket has the steps of a case whose scene is raw.
	socket socketSteps
	// lone is set if one rank is enough.
	lone bool
	// real says why the case is not measured in virtual time. It is "" if it is.
	real string
}

func (c *benchCase) moreIsBetter() bool { return stats.MoreIsBetter(c.unit) }

// fewest returns the least number of ranks of the case.
func (c *benchCase) fewest() int {
	if c.lone {
		return 1
	}
	return 2
}

// Reasons why cases are not measured in virtual time.
const (
	noProcessor = "simulated ranks have no processor time of their own"
	noSockets   = "a simulation has no sockets"
)

const (
	windowBytes = 64 << 20 // random displacements are anywhere in it
	inFlight    = 64       // operations before each flush of put_bw and get_bw
	getsAt      = 32 << 20
	// streamFrom and streamTo bound the displacements of operations in flight, in the buffer and in the window.
	streamFrom = 16 << 20
	streamTo   = 32 << 20
	// longestMessage bounds the memory of a channel, which has room for some messages.
	longestMessage = 4 << 20
)

var (
	byteSizes       = []int{8, 1024, 8192, 65536, 1048576}
	collectiveSizes = []int{8, 1024, 65536, 1048576}
	rankSizes       = []int{4, 16, 64}
)

func cases() []*benchCase {
	latency := func(steps float64) func(float64, int) float64 {
		return func(seconds float64, _ int) float64 { return seconds / steps * 1e6 }
	}
	bandwidth := func(messages float64) func(float64, int) float64 {
		return func(seconds float64, size int) float64 { return messages * float64(size) / seconds / 1e6 }
	}
	rate := func(seconds float64, size int) float64 { return float64(size) / seconds / 1e6 }
	turns := func(size int) int { return byBytes(size, 262144, 20000, 2000, 200) }
	halfTurns := func(size int) int { return turns(size) / 2 }
	streams := func(size int) int { return byBytes(size, 65536, 1000, 200, 20) }
	patterns := func(size int) int { return byBytes(size, windowBytes, 1000, 100, 100) }
	rates := func(int) int { return 200 }
	batches := func(int) int { return 100 }
	each := func(seconds float64, size int) float64 { return seconds / float64(size) * 1e9 }

	return []*benchCase{
		{name: "put_flush_lat", unit: stats.Microseconds, about: "one put and its flush",
			scene: passive, sizes: byteSizes, limit: windowBytes, each: 1, reach: front, origin: putFlush, iterations: turns, value: latency(1)},
		{name: "get_flush_lat", unit: stats.Microseconds, about: "one get and its flush",
			scene: passive, sizes: byteSizes, limit: windowBytes, each: 1, reach: front, origin: getFlush, iterations: turns, value: latency(1)},
		{name: "acc_flush_lat", unit: stats.Microseconds, about: "one accumulate (sum of float64) and its flush",
			scene: passive, sizes: byteSizes[:4], limit: windowBytes, each: 8, reach: operands, origin: accFlush, iterations: turns, value: latency(1)},
		{name: "fop_lat", unit: stats.Microseconds, about: "one fetch-and-op (sum of int64) and its flush",
			scene: passive, sizes: byteSizes[:1], reach: operands, origin: fopFlush, iterations: turns, value: latency(1)},
		{name: "cas_lat", unit: stats.Microseconds, about: "one compare-and-swap (int64) and its flush",
			scene: passive, sizes: byteSizes[:1], reach: operands, origin: casFlush, iterations: turns, value: latency(1)},
		{name: "put_bw", unit: stats.Megabytes, about: "64 puts, one flush",
			scene: passive, sizes: byteSizes, limit: getsAt, each: 1, reach: streamed, origin: putMany, iterations: streams, value: bandwidth(inFlight)},
		{name: "get_bw", unit: stats.Megabytes, about: "64 gets, one flush",
			scene: passive, sizes: byteSizes, limit: getsAt, each: 1, reach: streamed, origin: getMany, iterations: streams, value: bandwidth(inFlight)},
		{name: "scatter_rate", unit: stats.Operations, about: "1000 puts of 8 bytes at random displacements in 64 MiB, one flush",
			scene: passive, sizes: []int{1000}, reach: scattered, origin: scatterMany, iterations: rates, value: rate},
		{name: "update_rate", unit: stats.Operations, about: "1000 accumulates (xor of one uint64) at random displacements in 64 MiB, one flush",
			scene: passive, sizes: []int{1000}, reach: anywhere, origin: updateMany, iterations: rates, value: rate},
		{name: "count_rate", unit: stats.Operations, about: "1000 accumulates (sum of one int64) at random displacements in 64 MiB, one flush",
			scene: passive, sizes: []int{1000}, reach: anywhere, origin: countMany, iterations: rates, value: rate, own: true},
		{name: "count_each_rate", unit: stats.Operations, about: "the same by one AccumulateEach",
			scene: passive, sizes: []int{1000}, reach: anywhere, origin: countEach, iterations: rates, value: rate, own: true},
		{name: "row_rate", unit: stats.Operations, about: "1000 puts of 8 bytes, every other 8 of the origin's, contiguous at the target, one flush",
			scene: passive, sizes: []int{1000}, reach: everyOther, origin: rowMany, iterations: rates, value: rate, own: true},
		{name: "mixed_rate", unit: stats.Operations, about: "500 accumulates (xor of one uint64) and 500 gets of 8 bytes alternating at random displacements in 64 MiB, one flush",
			scene: passive, sizes: []int{1000}, reach: mixed, origin: mixedMany, iterations: rates, value: rate, own: true},
		{name: "overlap_put_lat", unit: stats.Microseconds, about: "one put, a computation of one iteration for every 4 bytes, and the flush",
			scene: passive, sizes: []int{65536, 1048576}, limit: windowBytes, each: 1, reach: front, origin: putCompute, iterations: turns, value: latency(1), own: true},
		{name: "put_target_cpu", unit: stats.Nanoseconds, about: "processor time of the target's process, which waits in a barrier, for one put of scatter_rate",
			scene: passive, sizes: []int{1000}, reach: scattered, origin: scatterMany, iterations: rates, value: each, ofTarget: true, own: true, real: noProcessor},
		{name: "acc_target_cpu", unit: stats.Nanoseconds, about: "the same for one accumulate of update_rate",
			scene: passive, sizes: []int{1000}, reach: anywhere, origin: updateMany, iterations: rates, value: each, ofTarget: true, own: true, real: noProcessor},
		{name: "count_target_cpu", unit: stats.Nanoseconds, about: "the same for one accumulate of count_rate",
			scene: passive, sizes: []int{1000}, reach: anywhere, origin: countMany, iterations: rates, value: each, ofTarget: true, own: true, real: noProcessor},
		{name: "passive_put_lat", unit: stats.Microseconds, about: "one put and its flush while the target computes and calls nothing; median",
			scene: passive, sizes: byteSizes[:1], reach: front, sample: putsWhileComputing},

		{name: "fence_put_lat", unit: stats.Microseconds, about: "one put and the fence that closes its epoch",
			scene: fence, sizes: byteSizes, limit: windowBytes, each: 1, reach: front, origin: fencePut, target: fenceOnly, iterations: turns, value: latency(1)},
		{name: "fence_rate", unit: stats.Operations, about: "1000 puts of 8 bytes at random displacements in 64 MiB, one fence",
			scene: fence, sizes: []int{1000}, reach: scattered, origin: fenceMany, target: fenceOnly, iterations: rates, value: rate},

		{name: "pscw_put_lat", unit: stats.Microseconds, about: "start, put, complete to a target that posts and waits; half of a round trip",
			scene: pscw, sizes: byteSizes, limit: getsAt, each: 1, reach: front, origin: pingPut, target: pongPut, iterations: halfTurns, value: latency(2)},
		{name: "pscw_get_lat", unit: stats.Microseconds, about: "the same with a get",
			scene: pscw, sizes: byteSizes, limit: getsAt, each: 1, reach: gets(1), origin: pingGet, target: pongGet, iterations: halfTurns, value: latency(2)},
		{name: "pscw_both_lat", unit: stats.Microseconds, about: "the same with a put and a get",
			scene: pscw, sizes: byteSizes, limit: getsAt, each: 1, reach: gets(1), origin: pingBoth, target: pongBoth, iterations: halfTurns, value: latency(2)},
		{name: "halo_lat", unit: stats.Microseconds, about: "a put of each of two ranks to the other in one epoch of post and start, and a computation of 150000 iterations",
			scene: pscw, sizes: []int{16384}, limit: getsAt, each: 1, reach: front, origin: halo, target: halo, iterations: halfTurns, value: latency(1), own: true},
		{name: "pattern16_bw", unit: stats.Megabytes, about: "16 puts and 16 gets in one start-complete epoch",
			scene: pscw, sizes: byteSizes, limit: getsAt / 16, each: 1, reach: gets(16), origin: pattern16, target: pattern16Target, iterations: patterns, value: bandwidth(32)},

		{name: "socket_lat", unit: stats.Microseconds, about: "that many bytes in each direction over one socket on loopback, both ends polling; no library",
			scene: raw, sizes: byteSizes, limit: windowBytes, each: 1, reach: front, socket: socketSteps{pingSocket, pongSocket}, iterations: turns, value: latency(1), own: true, real: noSockets},
		{name: "socket_bw", unit: stats.Megabytes, about: "64 writes to such a socket, one byte back",
			scene: raw, sizes: byteSizes[3:], limit: getsAt, each: 1, reach: streamed, socket: socketSteps{streamOut, streamIn}, iterations: streams, value: bandwidth(inFlight), own: true, real: noSockets},

		{name: "hashtable_insert_rate", unit: stats.Operations, about: "1000 new keys of rank 1 put into a hash table (examples/hashtable) in one batch",
			scene: tables, sizes: []int{1000}, prepare: roomForKeys, origin: insertMany, iterations: batches, value: rate, own: true},
		{name: "hashtable_lookup_rate", unit: stats.Operations, about: "1000 random keys of rank 1 looked up in a hash table in one batch",
			scene: tables, sizes: []int{1000}, prepare: keysThere, origin: lookupMany, iterations: batches, value: rate, own: true},

		{name: "msg_lat", unit: stats.Microseconds, about: "a message (verbs/channel) and one back, each into the program's memory; half of a round trip",
			scene: messages, sizes: byteSizes, limit: longestMessage, each: 1, reach: message, origin: sendReceive, target: receiveSend, iterations: halfTurns, value: latency(2)},
		{name: "msg_bw", unit: stats.Megabytes, about: "64 messages, one of 8 bytes back",
			scene: messages, sizes: byteSizes, limit: longestMessage, each: 1, reach: messageStream, origin: sendMany, target: receiveMany, iterations: streams, value: bandwidth(inFlight)},
		{name: "allreduce_lat", unit: stats.Microseconds, about: "a sum of float64 over all ranks, with the result on every rank (world.AllReduceOp)",
			scene: collective, sizes: collectiveSizes, limit: getsAt, each: 8, origin: allReduce, target: allReduce, iterations: turns, value: latency(1)},
		{name: "bcast_lat", unit: stats.Microseconds, about: "a broadcast (world.Broadcast) whose root has just received the previous one",
			scene: collective, sizes: collectiveSizes, limit: windowBytes, each: 1, reach: front, origin: broadcast, target: broadcast, iterations: turns, value: latency(1)},

		{name: "barrier_lat", unit: stats.Microseconds, about: "one barrier of that many ranks (World.Barrier)",
			scene: alone, sizes: append([]int{2}, rankSizes...), measure: barrierLat, lone: true},
		{name: "allreduce_scale", unit: stats.Microseconds, about: "allreduce_lat of 8 bytes among that many ranks",
			scene: alone, sizes: rankSizes, measure: allReduceScale, lone: true},
		{name: "bcast_scale", unit: stats.Microseconds, about: "bcast_lat of 8 bytes among that many ranks",
			scene: alone, sizes: rankSizes, measure: broadcastScale},
		{name: "fence_scale", unit: stats.Microseconds, about: "one fence of that many ranks, all otherwise idle",
			scene: alone, sizes: rankSizes, measure: fenceScale, lone: true},
		{name: "create_time", unit: stats.Microseconds, about: "creating a window of 1 MiB a rank among that many ranks",
			scene: alone, sizes: rankSizes, measure: createTime, lone: true},
		{name: "idle_cpu", unit: stats.Percent, about: "share of a core that a rank uses while it waits one second in a fence",
			scene: alone, sizes: []int{2}, measure: idleCPU, real: noProcessor},
	}
}

// byBytes returns small for sizes until 8 KiB, medium until border, and then large.
func byBytes(size, border, small, medium, large int) int {
	switch {
	case size <= 8192:
		return small
	case size <= border:
		return medium
	}
	return large
}

// caseNames returns the names of all cases, in the order of -list.
func caseNames() []string {
	var names []string
	for _, c := range cases() {
		names = append(names, c.name)
	}
	return names
}

// caseNamed returns the case with a name, or nil.
func caseNamed(name string) *benchCase {
	all := cases()
	i := slices.IndexFunc(all, func(c *benchCase) bool { return c.name == name })
	if i < 0 {
		return nil
	}
	return all[i]
}
