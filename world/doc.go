// Package world starts and joins jobs of ranks, and has their teams, collectives and failures.
//
//	err := world.Run(ctx, 4, func(ctx context.Context, w *world.World) error {
//		sum := make([]int, 1)
//		return world.AllReduceOp(ctx, w, []int{w.Rank()}, sum, world.Sum)
//	})
//
// [Main] makes a program of a body: the environment says what its ranks are. [Run] makes them goroutines of this process. [Init]
// joins the processes that a launcher started, or that RMA_ROOT brings together. [New] joins processes that have found each other by
// means of their own. [Simulate] runs ranks in virtual time. [Dial] and [Listen] connect processes that were not started together.
//
// Ranks of one host map each other's memory. Other ranks reach each other over TCP or RDMA cards. [World.Route] says which applies.
//
// # Collectives
//
// [World.Barrier], [Broadcast], [Gather], [AllGather], [Reduce], [AllReduce], [Scatter], [AllToAll] and [World.Split] are called by all
// ranks in the same order, with the same root, element layout and lengths, by one goroutine of a rank at a time ([ErrBusy]).
// Elements are numbers, booleans, and arrays and structs of them. Slices belong to the call until it returns. Among
// algorithms with few messages and algorithms with few bytes, all ranks choose the one that the costs of their cards make the
// cheapest. Only Barrier waits for all ranks: other calls return when this rank's part is done.
//
// An argument that is wrong by itself is an error that wraps [ErrArgument], and the call counts as not made. When ranks disagree, every rank
// gets an error that wraps [ErrMismatch], in that call or in the next one it makes, at the latest in the next Barrier. The error
// names the calls of two ranks. No collective succeeds afterwards. A mismatch in the last call before Close may go unnoticed.
//
// A call looks at its context when it is about to sleep. A call that returned because its context ended is unfinished: called again with
// the same arguments, it continues. Until then every other collective returns [ErrUnfinished], and the memory that the call sends must not be changed.
// After every other error all memory belongs to the caller.
//
// The error of such a call names the rank that the call waited for, as far as this rank knows, and after some tenths of a
// second also the call that the other rank is in. Fence and Close of a window are not among these collectives: a goroutine
// in Fence and another one in Barrier do not disagree, and wait until their contexts end.
//
// A call that waits long logs a warning, with or without a context: see [WithStall].
//
// # Teams
//
// [World.Split] makes teams. A team is a World for every use: collectives, windows, another Split. Its ranks are
// numbered from 0. Devices, progress and failures are shared with the World that was split. A team takes about 7 KiB, 32 bytes for each
// rank, and 64 or 320 more for each where there are at most 256 or 64 ranks; connections and memory for long messages are added
// when they are first used. A rank that fails has failed in all its teams. A rank that closes a team has left that team and nothing else.
//
// # Progress
//
// A caller that waits makes progress for its rank: it polls a bounded number of times, yields, then sleeps until a device
// wakes it. With more ranks than cores it yields at once. Where ranks are reached over a network a background goroutine makes progress while
// nobody waits, so that a program that computes delays no other rank. It stands back while a call polls, and, for a few
// milliseconds at most, from a program that computes and calls by turns, unless another rank waits. With GOMAXPROCS=1 it always stands back, and
// a rank that computes serves others every 10 to 20 ms.
//
// # Sessions
//
// Processes that are not started together have a World of two ranks each: one listens ([Listen]) and may have many of them, the
// others [Dial]. Such a session has no collectives. Package window builds Serve and Attach on it.
//
// # Failure
//
// A rank fails when its process ends before it has closed its World, or its body returns an error, panics or ends its goroutine. From then
// on every call that needs the rank returns a [*PeerError], also a call that is waiting. Over a network a rank that is
// silent for the time of [WithPeerTimeout] has failed, too. [World.Shrink] makes a World of the survivors.
//
// A call that needs one rank names that rank, whenever it failed. A collective, which needs every rank, names the one that failed first as far
// as this rank knows, and the cause of a later failure mentions the first one. Before a call reports a failure, the ranks that this one is
// connected with are told of it. Over a network, a rank that is only beginning to wait for another one may
// not be connected with it yet, and then names that rank instead. So does a rank of one host that finds a process gone which it had not met.
//
// A silent rank may only be stopped, or cut off. A rank that takes it for dead closes all connections with it before any call says
// so, and accepts no new ones: when it comes back it finds that the others failed, and nothing that it does over the network reaches
// them. Hosts that are cut off from each other take each other for dead.
//
// Between ranks that share memory silence is no failure: a stopped rank delays those that wait for it until it continues or is
// killed, or their contexts end. An operation has no context: on a rank that this one has never met it returns an error after 10 s. If ranks
// of other hosts have given the stopped rank up, those of its own host hear of that and continue without it, but it can still write to the
// memory that it maps. Kill a stopped process to be sure.
//
// A rank that closes its World while others wait for it in a collective makes that one and every later one fail, with a *PeerError whose cause
// is [ErrLeft]. [World.Close] waits until all others have closed or failed: passive-target calls of package window, which need only the
// memory of a rank, work until then.
package world
