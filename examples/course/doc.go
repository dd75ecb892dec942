// Package course teaches one-sided communication with this library, by programs: each chapter has an example in
// example_test.go, which the tests run. It has nothing else.
//
// # 1. A first window (example FirstWindow)
//
// A job is a number of ranks, which run one program. [world.Main] runs a function, the body, on each of them. Under a
// launcher each process is one rank; without one the ranks are goroutines of the process, RMA_RANKS of them.
// Programs that choose for themselves call [world.Run], which makes ranks goroutines, or [world.Init], which makes the
// process a rank. The body is the same. A window is memory that each rank exposes to the others, as
// elements of one type. A rank puts into it, gets from it and accumulates onto it, and its owner takes no part. What it
// does not get for nothing is order: an operation has happened when a synchronization says so, and until then buffers belong
// to the library.
//
// # 2. Choosing a synchronization (examples Fence, Groups, Locks, Notify, Tickets)
//
//	what the program is like                         call
//	all ranks exchange something, in steps           Fence
//	each rank has a few neighbours, in steps         Post, Start, Complete, Wait
//	nobody knows who will need what when             LockAll, once; then Flush
//	some things must be changed together             Lock(Exclusive) and Unlock
//	one rank waits for what another makes            PutNotify and WaitNotify
//
// Fence is the simplest and waits for everyone; groups wait for those they name. Ranks that both post and start post
// first. With LockAll(NoCheck) there are no locks: it costs nothing, and Flush completes what was issued, which is what
// tables, queues and counters want. FlushLocal is enough to use a result, as that of FetchAndOp in example Tickets. In all
// of them an element that is put to may not be touched by anyone else in the same epoch, while the accumulate family may
// meet on one element: that is how ranks share counters. RMA_DEBUG=1 looks for breaches.
//
// # 3. What is fast, and why (example Fast)
//
// Where ranks share memory an operation is a check and a copy: some ten nanoseconds. Over a network it is put in a queue,
// and the library decides how it travels: many small ones together in one message, long ones direct, gets first. So
//
//   - issue many operations, then synchronize once: a Flush for each costs a round trip for each;
//   - use one Put of n elements, or one PutLayout, and not n Puts;
//   - promise what is so: SingleElement has the accumulate family done by the processor's atomics, without locks;
//   - on memory that is mapped, [window.Window.Mapped] returns it, for loads and atomics of the program;
//   - use buffers again: cards that need registered memory learn those.
//
// RMA_STATS=- prints what a run has done and how it travelled, RMA_TRACE draws it.
//
// # 4. On a cluster (example Cluster)
//
// Programs call [world.Main], or [world.Init] as the example does. They are started by cmd/rmarun, MPICH's mpiexec or srun;
// without a launcher by a shell on each host, with RMA_ROOT, RMA_RANK, RMA_SIZE and RMA_KEY_FILE, a key that says who may
// join. Ranks on one host share memory,
// others use TCP, or RDMA cards where the program was built for them. Nothing in the program changes. On networks that are
// not only the job's, world.WithTLS encrypts.
//
// # 5. Failure (example Failure)
//
// A rank that dies ends every call that needs it with a *world.PeerError that names it, in bounded
// time; one that leaves, every call that needs a call of that rank. Survivors close what they had and go on in the World that
// Shrink makes of them. Every other mistake is an error too: none is fatal, and each says what was wrong and what is allowed.
//
// # 6. Coming from MPI or OpenSHMEM (example FromMPI)
//
//	MPI                                       here
//	MPI_Init, MPI_Comm_rank, MPI_Comm_size    world.Main or world.Init, w.Rank, w.Size
//	MPI_Finalize                              the end of the body of world.Main; w.Close after world.Init
//	MPI_Wtime                                 w.Now
//	MPI_Comm_split                            w.Split
//	MPI_Barrier, MPI_Bcast, MPI_Gather …      w.Barrier, world.Broadcast, world.Gather …
//	MPI_Reduce, MPI_Allreduce with MPI_SUM    world.ReduceOp, world.AllReduceOp with world.Sum
//	… with MPI_Op_create                      world.Reduce, world.AllReduce with a function
//	MPI_Win_allocate, MPI_Win_create          window.Allocate, window.Create
//	MPI_Win_free                              win.Close
//	MPI_Win_shared_query                      win.Shared
//	MPI_Put, MPI_Get, MPI_Accumulate          win.Put, win.Get, win.Accumulate
//	MPI_Get_accumulate, MPI_Fetch_and_op      win.GetAccumulate, win.FetchAndOp
//	MPI_Compare_and_swap                      win.CompareAndSwap
//	MPI_Rput, MPI_Wait, MPI_Test              win.RPut, request.Wait, request.Test
//	MPI_Accumulate of single elements         win.AccumulateEach
//	MPI_Type_vector, MPI_Type_indexed         window.Strided, window.Indexed with win.PutLayout …
//	MPI_Win_fence with MPI_MODE_NOSUCCEED …   win.Fence with window.NoSucceed …
//	MPI_Win_start, _complete, _post, _wait    win.Start, win.Complete, win.Post, win.Wait
//	MPI_Win_test                              win.Test
//	MPI_Win_lock with MPI_LOCK_SHARED …       win.Lock with window.Shared …
//	MPI_Win_lock_all with MPI_MODE_NOCHECK    win.LockAll with window.NoCheck
//	MPI_Win_flush, _flush_local, _all         win.Flush, win.FlushLocal, win.FlushAll …
//	MPI_Win_sync                              win.Sync
//	accumulate_ops=same_op_no_op              window.SameOp
//	accumulate_ordering=none                  window.Unordered
//	MPI_Comm_accept, MPI_Comm_connect         window.Serve, world.Dial with window.Attach
//	MPI_Abort, error handlers                 errors that calls return
//	MPIX_Comm_shrink                          w.Shrink
//
//	OpenSHMEM                                 here
//	shmem_init, shmem_my_pe, shmem_n_pes      world.Main or world.Init, w.Rank, w.Size
//	shmem_finalize                            as MPI_Finalize
//	shmem_malloc                              window.Allocate and LockAll with NoCheck
//	shmem_put_nbi, shmem_get_nbi              win.Put, win.Get
//	shmem_put, shmem_get, shmem_p, shmem_g    the same and win.FlushLocal
//	shmem_iput, shmem_iget                    win.PutLayout, win.GetLayout with window.Strided
//	shmem_quiet                               win.FlushAll
//	shmem_fence                               win.Flush of the target
//	shmem_ptr                                 win.Shared
//	shmem_atomic_fetch_add, _swap …           win.FetchAndOp with window.Sum, window.Replace …
//	shmem_atomic_compare_swap                 win.CompareAndSwap
//	shmem_put_signal, shmem_signal_wait_until win.PutNotify, win.WaitNotify
//	shmem_set_lock, shmem_clear_lock          win.Lock with window.Exclusive, win.Unlock
//	shmem_barrier_all                         win.FlushAll and w.Barrier
//	shmem_broadcast, shmem_alltoall …         world.Broadcast, world.AllToAll …
//	shmem_team_split_strided                  w.Split
//
//	not here                                  instead
//	MPI_Send, MPI_Recv                        win.PutNotify by the sender, win.WaitNotify by the receiver
//	MPI_Scan, MPI_Exscan                      world.AllGather, and a loop over the values of lower ranks
//	MPI_Win_create_dynamic, MPI_Win_attach    window.Create by all ranks for each further piece of memory
//	shmem_wait_until                          win.WaitNotify, of a put that notifies
//
// Displacements count elements, from 0, and not bytes. There is no memory model to choose: it is MPI's unified one.
// A window is typed; [window.View] has it as elements of another type.
package course
