package cases

import (
	"context"
	"slices"

	"github.com/onesided/rma/bench/internal/stats"
)

// A Step is one iteration of a case's loop on one rank; n is the cell's size.
type Step func(ctx context.Context, b *Buffers, n int) error

// A Kind is the synchronization that surrounds a case.
type Kind int

const (
	Passive    Kind = iota // every rank holds LockAll
	Fence                  // a fence epoch is open
	PSCW                   // none: the steps start, complete, post and wait
	Tables                 // no window: the steps work on a hash table
	Collective             // no window: every rank runs the step
	Messages               // no window: ranks 0 and 1 send each other messages
	Alone                  // the case makes its own windows; its size is the number of ranks
	Raw                    // no library: two processes with one socket between them
)

// A Case is one kind of measurement. Each of its sizes is a cell.
type Case struct {
	Name  string
	Unit  string
	About string
	Kind  Kind

	// Sizes are measured unless others are requested. Other sizes are allowed up to Limit, in multiples of Each; a
	// Limit of 0 allows none.
	Sizes []int
	Limit int
	Each  int

	// origin is the step of rank 0 and target that of the others. It is nil for ranks that only wait in the barrier.
	origin, target Step
	Iterations     func(size int) int
	// reach is nil for a case without window and buffer.
	reach reach
	// Value converts the seconds of one step into the unit.
	Value func(seconds float64, size int) float64

	// Measure runs a case whose kind is Alone. It returns one value a repeat; those of rank 0 count.
	Measure func(ctx context.Context, r *Rank) ([]float64, error)
	// Sample does that for a case with Buffers whose iterations are timed one by one.
	Sample func(ctx context.Context, r *Rank, b *Buffers, n int) ([]float64, error)
	// Prepare prepares every rank for a loop of that many iterations, and is not timed.
	Prepare func(ctx context.Context, b *Buffers, iterations, n int) error
	// OfTarget makes the processor time of rank 1's process during a loop count, and not the time on rank 0's clock. In
	// virtual time it is the time by which the loop delays a computation of rank 1.
	OfTarget bool
	// Ours is set if the peers' programs do not have the case.
	Ours bool
	// Socket has the steps of a case whose kind is Raw.
	Socket SocketSteps
	// OneRank is set if one rank is enough.
	OneRank bool
	// NotVirtual says why the case is not measured in virtual time. It is "" if it is.
	NotVirtual string
}

// MoreIsBetter reports whether the unit of the case is that of a rate or bandwidth.
func (c *Case) MoreIsBetter() bool { return stats.MoreIsBetter(c.Unit) }

// FewestRanks returns the least number of ranks of the case.
func (c *Case) FewestRanks() int {
	if c.OneRank {
		return 1
	}
	return 2
}

// Reasons why cases are not measured in virtual time.
const (
	noProcessor = "a simulated rank that waits uses no processor"
	noSockets   = "a simulation has no sockets"
)

const (
	windowBytes = 64 << 20 // random displacements are anywhere in it
	InFlight    = 64       // operations before each flush of put_bw and get_bw
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

// All returns the cases, in the order of -list.
func All() []*Case {
	latency := func(steps float64) func(float64, int) float64 {
		return func(seconds float64, _ int) float64 { return seconds / steps * 1e6 }
	}
	bandwidth := func(messages float64) func(float64, int) float64 {
		return func(seconds float64, size int) float64 { return messages * float64(size) / seconds / 1e6 }
	}
	rate := func(seconds float64, size int) float64 { return float64(size) / seconds / 1e6 }
	iterations := func(size int) int { return byBytes(size, 262144, 20000, 2000, 200) }
	halfIterations := func(size int) int { return iterations(size) / 2 }
	streams := func(size int) int { return byBytes(size, 65536, 1000, 200, 20) }
	patterns := func(size int) int { return byBytes(size, windowBytes, 1000, 100, 100) }
	rates := func(int) int { return 200 }
	batches := func(int) int { return 100 }
	each := func(seconds float64, size int) float64 { return seconds / float64(size) * 1e9 }

	return []*Case{
		{Name: "put_flush_lat", Unit: stats.Microseconds, About: "one put and its flush",
			Kind: Passive, Sizes: byteSizes, Limit: windowBytes, Each: 1, reach: front, origin: putFlush, Iterations: iterations, Value: latency(1)},
		{Name: "get_flush_lat", Unit: stats.Microseconds, About: "one get and its flush",
			Kind: Passive, Sizes: byteSizes, Limit: windowBytes, Each: 1, reach: front, origin: getFlush, Iterations: iterations, Value: latency(1)},
		{Name: "acc_flush_lat", Unit: stats.Microseconds, About: "one accumulate (sum of float64) and its flush",
			Kind: Passive, Sizes: byteSizes[:4], Limit: windowBytes, Each: 8, reach: operands, origin: accFlush, Iterations: iterations, Value: latency(1)},
		{Name: "fop_lat", Unit: stats.Microseconds, About: "one fetch-and-op (sum of int64) and its flush",
			Kind: Passive, Sizes: byteSizes[:1], reach: operands, origin: fopFlush, Iterations: iterations, Value: latency(1)},
		{Name: "cas_lat", Unit: stats.Microseconds, About: "one compare-and-swap (int64) and its flush",
			Kind: Passive, Sizes: byteSizes[:1], reach: operands, origin: casFlush, Iterations: iterations, Value: latency(1)},
		{Name: "put_bw", Unit: stats.MegabytesPerSecond, About: "64 puts, one flush",
			Kind: Passive, Sizes: byteSizes, Limit: getsAt, Each: 1, reach: streamed, origin: putMany, Iterations: streams, Value: bandwidth(InFlight)},
		{Name: "get_bw", Unit: stats.MegabytesPerSecond, About: "64 gets, one flush",
			Kind: Passive, Sizes: byteSizes, Limit: getsAt, Each: 1, reach: streamed, origin: getMany, Iterations: streams, Value: bandwidth(InFlight)},
		{Name: "scatter_rate", Unit: stats.MegaoperationsPerSecond, About: "1000 puts of 8 bytes at random displacements in 64 MiB, one flush",
			Kind: Passive, Sizes: []int{1000}, reach: scattered, origin: scatterMany, Iterations: rates, Value: rate},
		{Name: "update_rate", Unit: stats.MegaoperationsPerSecond, About: "1000 accumulates (xor of one uint64) at random displacements in 64 MiB, one flush",
			Kind: Passive, Sizes: []int{1000}, reach: anywhere, origin: updateMany, Iterations: rates, Value: rate},
		{Name: "count_rate", Unit: stats.MegaoperationsPerSecond, About: "1000 accumulates (sum of one int64) at random displacements in 64 MiB, one flush",
			Kind: Passive, Sizes: []int{1000}, reach: anywhere, origin: countMany, Iterations: rates, Value: rate, Ours: true},
		{Name: "count_each_rate", Unit: stats.MegaoperationsPerSecond, About: "the same by one AccumulateEach",
			Kind: Passive, Sizes: []int{1000}, reach: anywhere, origin: countEach, Iterations: rates, Value: rate, Ours: true},
		{Name: "row_rate", Unit: stats.MegaoperationsPerSecond, About: "1000 puts of 8 bytes, every other 8 of the origin's, contiguous at the target, one flush",
			Kind: Passive, Sizes: []int{1000}, reach: everyOther, origin: rowMany, Iterations: rates, Value: rate, Ours: true},
		{Name: "mixed_rate", Unit: stats.MegaoperationsPerSecond, About: "500 accumulates (xor of one uint64) and 500 gets of 8 bytes alternating at random displacements in 64 MiB, one flush",
			Kind: Passive, Sizes: []int{1000}, reach: mixed, origin: mixedMany, Iterations: rates, Value: rate, Ours: true},
		{Name: "overlap_put_lat", Unit: stats.Microseconds, About: "one put, a computation of one iteration for every 4 bytes, and the flush",
			Kind: Passive, Sizes: []int{65536, 1048576}, Limit: windowBytes, Each: 1, reach: front, origin: putCompute, Iterations: iterations, Value: latency(1), Ours: true},
		{Name: "changing_lat", Unit: stats.Microseconds, About: "100 epochs of row_rate:1000, then one of overlap_put_lat: a pattern that changes",
			Kind: Passive, Sizes: []int{1048576}, Limit: windowBytes, Each: 1, reach: changingReach, origin: changing, Iterations: rates, Value: latency(1), Ours: true},
		{Name: "put_target_cpu", Unit: stats.Nanoseconds, About: "processor time of the target's process, which waits in a barrier, or in virtual time computes, for one put of scatter_rate",
			Kind: Passive, Sizes: []int{1000}, reach: scattered, origin: scatterMany, Iterations: rates, Value: each, OfTarget: true, Ours: true},
		{Name: "acc_target_cpu", Unit: stats.Nanoseconds, About: "the same for one accumulate of update_rate",
			Kind: Passive, Sizes: []int{1000}, reach: anywhere, origin: updateMany, Iterations: rates, Value: each, OfTarget: true, Ours: true},
		{Name: "count_target_cpu", Unit: stats.Nanoseconds, About: "the same for one accumulate of count_rate",
			Kind: Passive, Sizes: []int{1000}, reach: anywhere, origin: countMany, Iterations: rates, Value: each, OfTarget: true, Ours: true},
		{Name: "passive_put_lat", Unit: stats.Microseconds, About: "one put and its flush while the target computes and calls nothing; median",
			Kind: Passive, Sizes: byteSizes[:1], reach: front, Sample: putsWhileComputing},

		{Name: "fence_put_lat", Unit: stats.Microseconds, About: "one put and the fence that closes its epoch",
			Kind: Fence, Sizes: byteSizes, Limit: windowBytes, Each: 1, reach: front, origin: fencePut, target: fenceOnly, Iterations: iterations, Value: latency(1)},
		{Name: "fence_rate", Unit: stats.MegaoperationsPerSecond, About: "1000 puts of 8 bytes at random displacements in 64 MiB, one fence",
			Kind: Fence, Sizes: []int{1000}, reach: scattered, origin: fenceMany, target: fenceOnly, Iterations: rates, Value: rate},

		{Name: "pscw_put_lat", Unit: stats.Microseconds, About: "start, put, complete to a target that posts and waits; half of a round trip",
			Kind: PSCW, Sizes: byteSizes, Limit: getsAt, Each: 1, reach: front, origin: pingPut, target: pongPut, Iterations: halfIterations, Value: latency(2)},
		{Name: "pscw_get_lat", Unit: stats.Microseconds, About: "the same with a get",
			Kind: PSCW, Sizes: byteSizes, Limit: getsAt, Each: 1, reach: gets(1), origin: pingGet, target: pongGet, Iterations: halfIterations, Value: latency(2)},
		{Name: "pscw_both_lat", Unit: stats.Microseconds, About: "the same with a put and a get",
			Kind: PSCW, Sizes: byteSizes, Limit: getsAt, Each: 1, reach: gets(1), origin: pingBoth, target: pongBoth, Iterations: halfIterations, Value: latency(2)},
		{Name: "halo_lat", Unit: stats.Microseconds, About: "a put of each of two ranks to the other in one epoch of post and start, and a computation of 150000 iterations",
			Kind: PSCW, Sizes: []int{16384}, Limit: getsAt, Each: 1, reach: front, origin: halo, target: halo, Iterations: halfIterations, Value: latency(1), Ours: true},
		{Name: "pattern16_bw", Unit: stats.MegabytesPerSecond, About: "16 puts and 16 gets in one start-complete epoch",
			Kind: PSCW, Sizes: byteSizes, Limit: getsAt / 16, Each: 1, reach: gets(16), origin: pattern16, target: pattern16Target, Iterations: patterns, Value: bandwidth(32)},

		{Name: "socket_lat", Unit: stats.Microseconds, About: "that many bytes in each direction over one socket on loopback, both ends polling; no library",
			Kind: Raw, Sizes: byteSizes, Limit: windowBytes, Each: 1, reach: front, Socket: SocketSteps{pingSocket, pongSocket}, Iterations: iterations, Value: latency(1), Ours: true, NotVirtual: noSockets},
		{Name: "socket_bw", Unit: stats.MegabytesPerSecond, About: "64 writes to such a socket, one byte back",
			Kind: Raw, Sizes: byteSizes[3:], Limit: getsAt, Each: 1, reach: streamed, Socket: SocketSteps{streamOut, streamIn}, Iterations: streams, Value: bandwidth(InFlight), Ours: true, NotVirtual: noSockets},

		{Name: "hashtable_insert_rate", Unit: stats.MegaoperationsPerSecond, About: "1000 new keys of rank 1 put into a hash table (examples/hashtable) in one batch",
			Kind: Tables, Sizes: []int{1000}, Prepare: roomForKeys, origin: insertMany, Iterations: batches, Value: rate, Ours: true},
		{Name: "hashtable_lookup_rate", Unit: stats.MegaoperationsPerSecond, About: "1000 random keys of rank 1 looked up in a hash table in one batch",
			Kind: Tables, Sizes: []int{1000}, Prepare: keysThere, origin: lookupMany, Iterations: batches, Value: rate, Ours: true},

		{Name: "msg_lat", Unit: stats.Microseconds, About: "a message (verbs/channel) and one back, each into the program's memory; half of a round trip",
			Kind: Messages, Sizes: byteSizes, Limit: longestMessage, Each: 1, reach: message, origin: sendReceive, target: receiveSend, Iterations: halfIterations, Value: latency(2)},
		{Name: "msg_bw", Unit: stats.MegabytesPerSecond, About: "64 messages, one of 8 bytes back",
			Kind: Messages, Sizes: byteSizes, Limit: longestMessage, Each: 1, reach: messageStream, origin: sendMany, target: receiveMany, Iterations: streams, Value: bandwidth(InFlight)},
		{Name: "allreduce_lat", Unit: stats.Microseconds, About: "a sum of float64 over all ranks, with the result on every rank (world.AllReduceOp)",
			Kind: Collective, Sizes: collectiveSizes, Limit: getsAt, Each: 8, origin: AllReduce, target: AllReduce, Iterations: iterations, Value: latency(1)},
		{Name: "bcast_lat", Unit: stats.Microseconds, About: "a broadcast (world.Broadcast) whose root has just received the previous one",
			Kind: Collective, Sizes: collectiveSizes, Limit: windowBytes, Each: 1, reach: front, origin: Broadcast, target: Broadcast, Iterations: iterations, Value: latency(1)},

		{Name: "barrier_lat", Unit: stats.Microseconds, About: "one barrier of that many ranks (World.Barrier)",
			Kind: Alone, Sizes: append([]int{2}, rankSizes...), Measure: barrierLat, OneRank: true},
		{Name: "allreduce_scale", Unit: stats.Microseconds, About: "allreduce_lat of 8 bytes among that many ranks",
			Kind: Alone, Sizes: rankSizes, Measure: allReduceScale, OneRank: true},
		{Name: "bcast_scale", Unit: stats.Microseconds, About: "bcast_lat of 8 bytes among that many ranks",
			Kind: Alone, Sizes: rankSizes, Measure: broadcastScale},
		{Name: "fence_scale", Unit: stats.Microseconds, About: "one fence of that many ranks, all otherwise idle",
			Kind: Alone, Sizes: rankSizes, Measure: fenceScale, OneRank: true},
		{Name: "create_time", Unit: stats.Microseconds, About: "creating a window of 1 MiB a rank among that many ranks",
			Kind: Alone, Sizes: rankSizes, Measure: createTime, OneRank: true},
		{Name: "idle_cpu", Unit: stats.Percent, About: "share of a core that a rank uses while it waits one second in a fence",
			Kind: Alone, Sizes: []int{2}, Measure: idleCPU, NotVirtual: noProcessor},
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

// Names returns the names of all cases, in the order of -list.
func Names() []string {
	var names []string
	for _, c := range All() {
		names = append(names, c.Name)
	}
	return names
}

// ByName returns the case with a name, or nil.
func ByName(name string) *Case {
	all := All()
	i := slices.IndexFunc(all, func(c *Case) bool { return c.Name == name })
	if i < 0 {
		return nil
	}
	return all[i]
}
