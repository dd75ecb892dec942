// Bench measures one-sided operations: their latency, bandwidth and rate between two
// ranks, and what synchronization costs a whole job.
//
//	go run ./bench                                # every case, two processes
//	go run ./bench -size 8 put_flush_lat fop_lat  # two cells
//	go run ./bench -device local fence_put_lat    # ranks are goroutines
//	go run ./bench -set singleelement=on fop_lat  # with a switch thrown
//	go run ./bench -peers                         # beside Open MPI and MPICH
//	mpiexec -n 2 ./bench                          # ranks of a launcher
//
// Cases, sizes and methods are those of peers/mpi_rma.c and peers/mpi_job.c, which
// -peers compiles and runs: each cell is the best of several timed loops, each after
// a warm-up of a tenth of the loop and a barrier, on the clock of rank 0. A line of
// output is
//
//	case size value unit
//
// with size in bytes of one operation, except 1000 operations of one epoch in
// *_rate, and ranks in fence_scale, create_time and idle_cpu; and with value in us,
// MB/s (10^6), Mop/s (10^6) or percent of a core.
//
// With -peers everyone has a turn at each case, round by round, each case in
// processes of its own, and medians of the rounds are compared.
//
// # Invariants
//
// A timed loop calls one step function a turn and nothing else: no closure, no
// allocation of the benchmark's own (-allocs counts what there is), no look at the
// clock. What a step measures is written in one place, the cases_ files, so that it
// can be held against the C program line by line. Errors of the library end the job.
//
// Every job is bounded by -timeout, and no process that bench starts outlives it by
// more than that.
package main
