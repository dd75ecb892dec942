// Bench measures one-sided operations: their latency, bandwidth and rate between two ranks, and the cost of
// synchronization for a whole job.
//
//	go run ./bench                                # every case, two processes
//	go run ./bench -size 8 put_flush_lat fop_lat  # two cells
//	go run ./bench -device local fence_put_lat    # ranks are goroutines
//	go run ./bench -set singleelement=on fop_lat  # with a switch set
//	go run ./bench -peers                         # beside Open MPI and MPICH
//	go run ./bench -device tcp -peers             # the same, all of them over TCP
//	go run ./bench -device tcp -set tls=on        # the cost of encryption
//	go run ./bench msg_lat barrier_lat            # messages and barriers
//	go run ./bench -percentiles put_flush_lat:8   # the distribution of a latency
//	go run -tags ibverbs ./bench -device ibv      # over an RDMA card
//	go run ./bench -device sim:pcie-2005          # in virtual time, on a simulated card
//	go run ./bench schemes                        # schemes of arranging operations, on and off
//	go run ./bench switches                       # each optimization, on and off
//	go run ./bench kernels                        # the examples' kernels beside their MPI versions
//	go run ./bench paper -svg figures             # papers' figures, in virtual time
//	go run ./bench scale                          # thousands of ranks, in virtual time
//	go run ./bench report -o DIR                  # plots and tables of all that, as a page
//	go run ./bench gate -against HEAD~1           # fails if a change made cells slower
//	go run ./bench socket_lat socket_bw           # the system's sockets alone
//	mpiexec -n 2 ./bench                          # ranks of a launcher
//
// Cases, sizes and methods are those of peers/mpi_rma.c and peers/mpi_job.c, which -peers compiles and runs. Each
// cell is the best of several timed loops. Each loop follows a warm-up of a tenth of the loop and a barrier, and is
// timed by the clock of rank 0. A line of output is
//
//	case size value unit
//
// size is in bytes of one operation. It is the number of operations of one epoch in *_rate and *_target_cpu, and the
// number of ranks in barrier_lat, *_scale, create_time and idle_cpu. value is in us, ns, MB/s (10^6), Mop/s (10^6) or
// percent of a core.
//
// The processes of a job share the cores, as under rmarun: each gets its part as GOMAXPROCS, at least 1, unless that
// is set.
//
// Some cases time differently:
//
//   - passive_put_lat: rank 1 computes for a second and calls nothing. Rank 0 meanwhile times each put with its
//     flush, and the median of a loop counts. A library that needs calls of the target shows the rest of that second.
//   - socket_lat, socket_bw: neither the library nor ranks are used. Two processes of this program read and write the
//     two ends of one loopback connection by system calls alone, from and to memory as in the library's cases. Goals
//     over TCP are ratios to them.
//   - *_target_cpu: the value is user and system time of rank 1's process from the barrier before the loop to the one
//     after it, where rank 1 waits. Its polls for messages count, too. In virtual time the value is the time by which
//     the operations delay a computation of rank 1.
//
// Messages go over a channel (package verbs/channel) of ranks 0 and 1, on a separate device of the kind that the
// ranks use. Short messages are copied into the channel, longer ones are sent from the program's memory, and all are
// copied to the receiver's memory. The peers send messages by MPI_Send and MPI_Isend. Each broadcast has another rank
// as its root, one that has just received the previous broadcast. So no broadcast begins before another has arrived.
//
// The hashtable cases measure the table of examples/hashtable, with keys of 8 bytes and values of 8 that all belong
// to rank 1. They, count_rate, count_each_rate, row_rate, mixed_rate, overlap_put_lat, changing_lat, halo_lat and
// *_target_cpu are not in the peers' programs.
//
// Ranks that bench starts as processes get -device, or its default, as RMA_DEVICE, whatever value that had. A rank
// that then uses another device returns an error. Under a launcher the launcher sets the device. -device ibv needs a
// program built with the tag ibverbs, and a card: RMA_IBV_DEVICE and RMA_IBV_GID choose among several (package ibv).
// Compare the figures with those of the card makers' own programs, such as ib_write_lat: see verbs/ibv/softroce.
//
// # Trials
//
// With -shorten N loops have an Nth of their iterations, and cases that run for a time do so for an Nth of it. A run
// then does everything once, in little time, and its values mean little. The tests run cases so.
//
// # Percentiles
//
// With -percentiles the iterations of a latency are timed once more, in a separate loop after those of its value,
// which does not change. Rank 0 reads the clock once a batch. A batch is one iteration, or as many as take 20 times
// as long as reading the clock, but at most 64. The mean of a batch counts for its iterations, so in batches single
// slow iterations appear faster than they were. The times go to a histogram (package internal/histogram), whose
// buckets make percentiles at most 6 % too long; max is exact. Further lines are
//
//	case:p99 size value unit
//
// # Virtual time
//
// With -device sim:PROFILE the ranks are tasks of one process, each with a card of that profile (verbs/sim), and the
// clock is virtual. The values are exact, do not depend on this machine, and are the same for the same -seed. So two
// loops, of a tenth of the iterations, are enough; in the first the library may still register memory of its own.
//
// Posting, polling, registering and the library's copies take as much of a rank's processor as the profile says. All
// other instructions take no time, except that overlap_put_lat, changing_lat and halo_lat compute 2 ns an iteration.
// Cases of sockets and of processor time are left out. The buffers of a case are registered beforehand, but not those of
// the hash table. With -rails 2 each rank has two cards (verbs/rails); -set striping=off uses only the first.
//
// With -trace the events of the cards and the times of the timed loops go to a file for ui.perfetto.dev or
// chrome://tracing. For example go run ./bench -device sim:pcie-2005 -trace t.json pattern16_bw:65536 shows that
// reads and writes alternate on both directions of the link. -trace works with -device tcp or ibv, too: each rank
// records its own requests (internal/traced), the last 65536 of them. Recording adds to the measured time.
//
// # Peers
//
// With -peers the library and each peer measure a case alternately, and ratios within a round count: package
// bench/internal/compare has the method.
//
// # Schemes
//
// The command schemes compares the schemes of arranging the operations of an epoch: package
// bench/internal/experiments/schemes has the method.
//
// # Kernels
//
// The command kernels compares the speed of whole jobs: package bench/internal/experiments/kernels says of which.
//
// # Papers
//
// The command paper reproduces the figures of the papers that this library follows, in virtual time: package
// bench/internal/paper says what its lines mean.
//
// # Reports
//
// The command report measures cases on several devices and draws what it measured: package
// bench/internal/report says what it writes.
//
// # Gate
//
// The command gate fails if cells are slower than at an earlier commit: package
// bench/internal/experiments/regression has its table and its verdicts, package bench/internal/gate the method.
//
// # Invariants
//
// A timed loop calls one step function per iteration and nothing else: no closure, no allocation of the benchmark's
// own (-allocs counts the allocations), no read of the clock. What a step measures is written in one place, the
// files of package bench/internal/cases, so that it can be compared with the C program line by line. Errors of the
// library end the job.
//
// The packages under bench/internal import each other in one direction only: a test of this package has their order.
//
// Every job is bounded by -timeout, and no process that bench starts outlives it by more than that.
package main
