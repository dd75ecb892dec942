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
// # 2. Choosing a synchronization (examples Fence, Groups, Locks, Notify, Tickets)
//
//	the program                                      calls
//	all ranks exchange data in steps                 Fence
//	each rank exchanges with few neighbors in steps  Post, Start, Complete, Wait
//	accesses cannot be predicted                     LockAll, once; then Flush
//	several elements must change together            Lock(Exclusive) and Unlock
//	one rank waits for data of another               PutNotify and WaitNotify
//
// Fence is the simplest call and waits for all ranks. Groups wait for the ranks that they name. A rank that both
// posts and starts must post first. LockAll(NoCheck) takes no locks and costs nothing; Flush then completes what was
// issued. That suits tables, queues and counters. FlushLocal is enough to use a result, such as that of FetchAndOp in
// example Tickets.
//
// In every kind of epoch an element that is put to must not be accessed otherwise in the same epoch. Operations of
// the accumulate family may meet on one element: that is how ranks share counters. RMA_DEBUG=1 looks for violations.
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
// RMA_STATS=- prints what a run has done and how it travelled. RMA_TRACE writes a trace of it.
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
// When a rank dies, every call that needs it ends with a *world.PeerError that names the rank, in bounded time. When
// a rank leaves, every call that needs a call of it ends. The survivors close what they had and continue in the World
// that Shrink makes of them. Every other mistake is an error too: none is fatal, and each says what was wrong and
// what is allowed.
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
//	MPI_Win_shared_query                      win.Mapped
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
//	shmem_ptr                                 win.Mapped
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
//	shmem_wait_until                          win.WaitNotify, and PutNotify by the writer
//
// Displacements count elements, from 0, and not bytes. The memory model is MPI's unified one; there is no other. A
// window is typed; [window.View] returns it with elements of another type.
package course
