// Package world is the job: who its ranks are, how they found each other, progress,
// failure, and collectives.
//
//	err := world.Run(ctx, 4, func(ctx context.Context, w *world.World) error {
//		sum := make([]int, 1)
//		err := world.AllReduce(ctx, w, []int{w.Rank()}, sum, func(a, b int) int { return a + b })
//		...
//	})
//
// [Main] makes a program of a body: the environment says what its ranks are. [Run] makes them goroutines of this process. [Init] joins the processes that
// a launcher started, or that are told of rank 0 by RMA_ROOT; without either it is a
// world of one. [New] joins processes that have found each other by themselves.
//
// Ranks of one host map each other's memory; others reach each other over TCP, through
// a [Link]. [World.Route] tells which it is.
//
// # Collectives
//
// [World.Barrier], [Broadcast], [Gather], [AllGather], [Reduce], [AllReduce],
// [Scatter], [AllToAll] and [World.Split] are called by all ranks in the same order, with the same
// root, element layout and lengths, each rank's by one goroutine at a time
// ([ErrBusy]). Elements are numbers, booleans, and arrays and structs of them.
// Slices belong to the call until it returns. Of the ways in which a call can be done, with few
// messages or with few bytes, all ranks take the one that the costs of their cards make the
// cheapest ([WithAlgorithm]). Messages go through pipes in memory between ranks that map each other's
// ([WithPipes]), the shortest as notes there ([WithNotes]), between others over links. Only Barrier makes ranks wait for
// all: a call returns when this rank's part is done.
//
// An argument that is wrong by itself is an error wrapping [ErrArgument], at once,
// and the call has not been made. Ranks that disagree are an error wrapping
// [ErrMismatch] on every rank, in the call itself or in the next one that a rank
// makes, at the latest in the next Barrier; it names what two ranks have called. No
// collective goes well after that, because nobody can tell which calls belong
// together. What a rank only sent in its last call before Close nobody may notice.
//
// A call looks at its context when it is about to sleep. One that returned because
// its context ended is unfinished: called again, with the same arguments, it goes on
// where it was; any other collective is refused with [ErrUnfinished] until then. What it sends may be read until
// then: the caller leaves that as it is. After every other error all memory is the caller's.
//
// Such an error says which rank the call waits for, as far as this rank can tell, and if both have slept for some tenths of a
// second also what call that rank is in. A Fence of a window is no collective in this sense, nor is its Close: one goroutine of a
// rank may be there and another in a Barrier. So ranks of which one is in a Barrier and another in a Fence have not
// disagreed, and wait for each other as long as their contexts last.
//
// A call that has waited for long, with a context or without, says so by itself: see [WithStall].
//
// # Teams
//
// [World.Split] makes teams of the ranks of a World. A team is a World, for whatever takes
// one: collectives, windows, links, another Split. Its ranks are numbered from 0, in a
// *[PeerError] of it too, whose cause tells which rank of the job that is ([World.InJob]).
// Devices, progress and what is known of failures are those of the World that was split:
// a team takes a block of flags, of some 7 KiB and 32 bytes for each rank, and 64 more up to
// 256 ranks and 320 up to 64, and pipes, connections and memory for long messages ([WithStaging]), each when it is
// first used. A rank that fails has failed in every team that has it. One that closes a team has
// left that, and nothing else.
//
// # Progress
//
// All protocol work is in [World.Poll]. A caller that waits drives it: it looks a
// bounded number of times, yields, then sleeps on the device's channel. With more
// ranks than cores, of those that they are bound to, it yields at once. Where ranks are reached over links
// a goroutine, the driver, makes progress while nobody waits, so that a program that
// computes holds up nobody. While a call waits and polls it stands back: two sleepers on one network
// would wake each other's threads, and 32 processes on two cores take tens of milliseconds
// for a barrier that takes one. It also stands back, by a few milliseconds at most, from a program that computes and calls
// by turns, as long as no other rank waits for it in between ([WithStandBack]). Where GOMAXPROCS is 1 it always does, and a rank
// that computes without a call is interrupted for others every 10 to 20 ms, not at once as with two; where ranks
// take all cores of the machine and call often, one each is less trouble for each other.
//
// A card that writes into the memory of others by itself brings short messages so, which whoever
// waits sees at once ([WithRings]); a rank that sleeps, or computes, is told by others.
//
// # Sessions
//
// Processes that are not started together have a World of two each: one, which may have many at a
// time, listens ([Listen]), the others [Dial]. Such a session has no collectives; what its ranks do with each
// other is for package window, whose Serve and Attach are on top of it.
//
// # Failure
//
// A rank fails when its process ends, or its body returns an error, panics or ends
// its goroutine, before it has closed its World. From then on every call that needs
// it, also one that is blocked, returns a [*PeerError]. Over a network a rank that is
// silent for [WithPeerTimeout] has failed as well. [World.Shrink] makes a World of the
// survivors. It ends the waits of others: a collective in which a rank waits for one that has called Shrink instead fails, and
// every later one of that World. The error is a *PeerError that names the rank in Shrink, and an [ErrLeft]; where a rank has failed
// it names that one.
//
// A call that needs one rank names that one, whenever it failed; a collective, which
// needs every rank, names the one that failed first of those that this rank knows of,
// [World.FirstFailure]. Of a failure after the first the cause says so too, because a
// rank may have stopped for the first. Survivors hear of failures from each other: before
// a call says that a rank has failed, the ranks that this one has a [Link] with are told.
// But over a network a rank that only begins to wait for another, as that exits for its
// first error, may have no link with it yet, has heard of nothing else, and names that one. So may
// a rank of one host that finds a process gone which it had not met.
//
// A silent rank may be only stopped, or cut off. Who takes it for dead ends all
// connections with it before any call says so, and takes no new ones: when it comes
// back it finds the others failed, and nothing that it does over the network reaches
// them. Hosts that are cut off from each other take each other for dead.
//
// Between ranks that share memory nobody is silent: one that is stopped holds up those
// who wait for it until it is continued or killed, or their contexts end. An operation has no
// context: one on a rank that this one has never met is an error after 10 s. If ranks of other hosts have given it
// up meanwhile, those of its own host have heard of that and go on without it, but
// memory that it maps it can still write to. To be sure of it, kill what is stopped.
//
// A rank that closes its World while others wait for it in a collective fails that
// and every later one with a *PeerError whose cause is [ErrLeft]. [World.Close]
// waits until all others have closed or failed, and [World.CloseContext] no longer than its context lasts: what needs the memory of a rank alone, as do the passive-target calls
// of package window, goes on until then.
package job
