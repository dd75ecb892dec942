// Package world starts and joins jobs of ranks, and has their teams, collectives and failures.
//
//	err := world.Run(ctx, 4, func(ctx context.Context, w *world.World) error {
//		sum := make([]int, 1)
//		return world.AllReduceOp(ctx, w, []int{w.Rank()}, sum, world.Sum)
//	})
//
// [Main] runs a body as a whole program; the environment decides whether its ranks are processes, goroutines or simulated.
// [Run] makes them goroutines of this process. [Init] joins the processes that a launcher started, or that gather at RMA_ROOT.
// [New] joins processes that have found each other by means of their own. [Simulate] runs ranks in virtual time. [Dial] and
// [Listen] connect processes that were not started together.
//
// Ranks of one host map each other's memory. Other ranks reach each other over TCP or RDMA cards. [World.Route] says which applies.
//
// # Collectives
//
// [World.Barrier], [Broadcast], [Gather], [AllGather], [Reduce], [AllReduce], [Scatter], [AllToAll] and [World.Split] are collectives.
// All ranks call them in the same order, with the same root, element layout and lengths. One goroutine of a rank calls them at a
// time ([ErrBusy]).
// Elements are numbers, booleans, and arrays and structs of them. Slices belong to the call until it returns. All
// ranks choose the same algorithm: the cheapest by the costs of their cards. Only Barrier waits for all ranks: other calls return when this rank's part is done.
//
// An argument that is wrong by itself is an error that wraps [ErrArgument], and the call counts as not made. When ranks disagree,
// every rank gets an error that wraps [ErrMismatch], at the latest from the next Barrier. The error
// names the calls of two ranks. No collective succeeds afterwards. A mismatch in the last call before Close may go unnoticed.
//
// A call looks at its context when it is about to sleep. A call that returned because its context ended is unfinished: called again with
// the same arguments, it continues. Until then every other collective returns [ErrUnfinished], and the memory that the call sends must
// not be changed. After every other error all memory belongs to the caller.
//
// The error of a call whose context ended names the rank that the call waited for, if it is known. If both ranks have waited for
// 100 ms, the error also names the call that the awaited rank is in. Fence and Close of a window are not among these
// collectives: a rank in Fence and another one in Barrier do not disagree, but wait until their contexts end.
//
// A call that waits long logs a warning, with or without a context: see [WithStall].
//
// # Teams
//
// [World.Split] makes teams. A team is a World for every use: collectives, windows, another Split. Its ranks are
// numbered from 0. Devices, progress and failures are shared with the World that was split. A team takes about 7 KiB and 32 bytes for
// each rank. A team of at most 64 ranks takes 320 more bytes for each rank, and a team of 65 to 256 ranks 64 more. Connections and memory for
// long messages are added when they are first used. A rank that fails has failed in all its teams. A rank that closes a team has left
// that team and nothing else.
//
// # Progress
//
// A caller that waits makes progress for its rank: it polls a bounded number of times, yields, then sleeps until a device wakes it.
// With more ranks than cores it yields at once. Where ranks are reached over a network, a background goroutine makes progress while
// no call waits. So a program that computes delays no other rank. The goroutine pauses while a call polls. It also pauses, for a
// few milliseconds at most, in a program that alternates between computing and calls, unless another rank waits. With GOMAXPROCS=1
// it never runs beside the program, and a rank that computes serves others every 10 to 20 ms.
//
// # Sessions
//
// Processes that were not started together connect by a session. [Dial] gives the client a World of two ranks: itself, rank 1, and the
// server, rank 0. The server calls [Listen] and window.Serve; it has no World of its clients. The World of a session has no
// collectives but Close.
//
// # Failure
//
// A rank fails when its process ends before it has closed its World, or its body returns an error, panics or ends its goroutine. From then
// on every call that needs the rank returns a [*PeerError], also a call that is waiting. Over a network a rank that is
// silent for the time of [WithPeerTimeout] has failed, too. [World.Shrink] makes a World of the survivors.
//
// A call that needs one rank names that rank, whenever it failed. A collective needs every rank. It names the rank that failed
// first, as far as this rank knows; the cause of a later failure mentions the first one. Before a call reports a failure, this rank
// notifies the ranks that it is connected with.
//
// There are two exceptions. Over a network, a rank may begin to wait for a rank that it is not connected with yet: its error may
// name the awaited rank instead of the first one. A rank that finds that a process of its host has ended, whose memory it had not
// mapped, names the rank of that process.
//
// A silent rank may only be stopped, or cut off. A rank that counts it as failed closes all connections with it before any call
// reports the failure, and accepts no new ones. When the silent rank comes back, it finds that the others failed, and nothing that
// it does over the network reaches them. Hosts that are cut off from each other count each other as failed.
//
// Between ranks that share memory silence is no failure: a stopped rank delays those that wait for it until it continues or is
// killed, or their contexts end. An operation has no context: on a rank whose memory this one has not mapped yet, it returns an
// error after 10 s, or after the time of [WithPeerTimeout] if that is longer. If ranks of other hosts count the stopped rank as
// failed, those of its own host learn that and continue without it. It can still write to the memory that it maps. Kill a stopped
// process to be sure.
//
// If a rank closes its World while others wait for it in a collective, that collective and every later one fail. The error is a
// *PeerError whose cause is [ErrLeft]. [World.Close] waits until all others have closed or failed: passive-target calls of package
// window, which need only the memory of a rank, work until then.
package world
