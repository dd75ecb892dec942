// Package course teaches one-sided communication with this library by programs. Each chapter has examples in
// example_test.go, which the tests run. The package has no code.
//
// # 1. A first window (example FirstWindow)
//
// A job is a number of ranks that run one program. [world.Main] runs a function, the body, on each of them. Under a
// launcher each process is one rank. Without a launcher the ranks are goroutines of the process, RMA_RANKS of them.
// Programs can also choose: [world.Run] makes ranks goroutines, and [world.Init] makes the process a rank. The body
// is the same.
//
// A window is memory that each rank exposes to the others, as elements of one type. A rank puts into it, gets from it
// and accumulates into it, and the owner's program takes no part. Operations have no order by themselves. An
// operation is complete when a synchronization call says so. Until then its buffers belong to the library.
//
// # 2. Choosing a synchronization (examples Fence, Groups, Locks, Notify, Tickets, Requests)
//
//	need                                      calls                             who calls
//	all ranks exchange in steps               Fence                             all ranks
//	a few neighbors exchange in steps         Post, Start, Complete, Wait       the ranks that exchange
//	several elements change together          Lock(Exclusive), Unlock           the origin
//	any rank works on any memory at any time  LockAll once, then Flush          the origin
//	the target must learn that data arrived   PutNotify, WaitNotify             origin and target
//	one operation must complete               RPut, RGet, Wait of the request   the origin
//	results are used as they arrive           RGet, Completed                   the origin
//
// Fence is the simplest call and waits for all ranks. Groups wait for the ranks that they name. A rank that both
// posts and starts must post first. LockAll(NoCheck) takes no locks and costs nothing; Flush then completes what was
// issued. That suits tables, queues and counters. FlushLocal is enough to use a result, such as that of FetchAndOp in
// example Tickets.
//
// A put conflicts with every other access to its elements, and a get with every accumulate that changes them. A flush,
// or the end of an epoch, must come between two accesses that conflict. Accumulates do not conflict with each other:
// that is how ranks share counters. RMA_DEBUG=1 looks for violations.
//
// # 3. What is fast, and why (example Fast)
//
// If ranks share memory, an operation is a check and a copy, and takes nanoseconds. Over a network it is put in a
// queue, and the library decides how it travels: many small ones together in one message, long ones direct, and gets
// first. So
//
//   - Issue many operations, then synchronize once: each Flush costs a round trip.
//   - Use one Put of n elements, or one PutLayout, and not n Puts.
//   - Promise what is true: with SingleElement the processor's atomics do the accumulate family, without locks.
//   - Use memory that is mapped by loads and atomics of the program: [window.Window.Mapped] returns it.
//   - Reuse buffers: cards need registered memory, and the library keeps the registrations of buffers that it knows.
//
// RMA_STATS=- prints the operations of a run, and how they travelled. RMA_TRACE writes a trace.
//
// # 4. On a cluster (example Cluster)
//
// Programs call [world.Main], or [world.Init] as the example does. cmd/rmarun, MPICH's mpiexec or srun starts them.
// Without a launcher a shell on each host does, with RMA_ROOT, RMA_RANK, RMA_SIZE and RMA_KEY_FILE. The key decides
// which processes may join. Ranks on one host share memory. Others use TCP, or RDMA cards if the program was built
// for them. The program does not change. world.WithTLS encrypts on networks that are shared with others.
//
// # 5. Failure (example Failure)
//
// When a rank dies, every call that needs it ends with a *world.PeerError that names the rank, in bounded time. When a
// rank leaves, every call that needs a call of that rank returns an error. The survivors close what they had and
// continue in the World that Shrink makes of them. Every other mistake is an error too: none is fatal, and each says
// what was wrong and what is allowed.
//
// # 6. Coming from MPI or OpenSHMEM (example FromMPI)
//
// docs/guide/porting.md lists the names of MPI and OpenSHMEM with their counterparts here. Example FromMPI is a program
// of MPI in this library.
//
// Displacements count elements, not bytes. The memory model is MPI's unified one; there is no other. A
// window is typed; [window.View] returns it with elements of another type.
package course
