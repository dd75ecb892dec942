// Bench measures one-sided operations: their latency, bandwidth and rate between two
// ranks, and what synchronization costs a whole job.
//
//	go run ./bench                                # every case, two processes
//	go run ./bench -size 8 put_flush_lat fop_lat  # two cells
//	go run ./bench -device local fence_put_lat    # ranks are goroutines
//	go run ./bench -set singleelement=on fop_lat  # with a switch thrown
//	go run ./bench -peers                         # beside Open MPI and MPICH
//	go run ./bench -device tcp -peers             # the same, all of them over TCP
//	go run ./bench -device tcp -set tls=on        # what encryption costs
//	go run ./bench msg_lat barrier_lat            # messages and barriers
//	go run ./bench -percentiles put_flush_lat:8   # how a latency is distributed
//	go run -tags ibverbs ./bench -device ibv      # over an RDMA card
//	go run ./bench -device sim:pcie-2005          # in virtual time, on a simulated card
//	go run ./bench schemes                        # ways to arrange operations, on and off
//	go run ./bench switches                       # each optimization, on and off
//	go run ./bench kernels                        # the examples' kernels beside their MPI versions
//	go run ./bench paper -svg figures             # papers' figures, in virtual time
//	go run ./bench scale                          # thousands of ranks, in virtual time
//	go run ./bench report -o DIR                  # plots and tables of all that, as a page
//	go run ./bench gate -against HEAD~1           # fails if a change made cells slower
//	go run ./bench socket_lat socket_bw           # what the system's sockets give
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
// *_rate and *_target_cpu, and ranks in barrier_lat, *_scale, create_time and idle_cpu; and with
// value in us, ns, MB/s (10^6), Mop/s (10^6) or percent of a core.
//
// The processes of a job have the cores once, as rmarun's do: each has its part as GOMAXPROCS, 1 at least, unless that is set.
//
// Some cases time differently. In passive_put_lat rank 1 computes for a second and
// calls nothing, rank 0 meanwhile times each put with its flush, and the median of a
// loop counts: who needs the target's calls shows the rest of that second. socket_lat
// and socket_bw use neither the library nor ranks: two processes of this program read
// and write the two ends of one loopback connection by system calls alone, from and
// to memory as the library's cases. They are what goals over TCP are ratios to.
// *_target_cpu is user and system time of rank 1's process from the barrier before the
// loop to the one after it, where rank 1 waits: its looking for messages counts too.
//
// Messages go over a channel (package verbs/channel) of ranks 0 and 1, on a device of their own of the
// kind that the ranks use, opened for that: what is short is copied into the channel, what is longer sent from where it
// is, and all of it copied to where the receiver wants it. The peers send it by MPI_Send and MPI_Isend. Of
// broadcasts each has another rank for its root, which has just got the one before, so
// that no broadcast is begun before another has arrived.
//
// The hashtable cases measure the table of examples/hashtable, with keys of 8 bytes and
// values of 8 that all belong to rank 1. They, count_rate, count_each_rate, row_rate, mixed_rate, overlap_put_lat, halo_lat and
// *_target_cpu are not in the peers' programs.
//
// Ranks that bench starts as processes get -device, or its default, as RMA_DEVICE, whatever that was; a rank
// that then uses another device refuses to measure. Under a launcher it is the launcher's to set. -device ibv takes a
// program that was built with the tag ibverbs, and a card: RMA_IBV_DEVICE and RMA_IBV_GID choose among several (package
// ibv). What the card's makers' own programs measure of it, ib_write_lat and others, is what to
// hold the figures against: see verbs/ibv/softroce.
//
// # Trials
//
// With -shorten N loops have an Nth of their turns, and what runs for a time does so for an Nth of it: all of a
// run is done once, in little time. The values mean little. The tests run cases so.
//
// # Percentiles
//
// With -percentiles a latency's turns are timed once more, in a loop of their own after those that its
// value is of, which so stay what they are. Rank 0 reads the clock once a batch: a batch is one turn, or
// as many as take 20 times as long as reading the clock, but at most 64. A batch's mean counts for
// its turns, so that in batches single slow turns show less than they took. The times go to a histogram
// (package internal/histogram), whose buckets make percentiles at most 6 % too long; max is exact. Further lines are
//
//	case:p99 size value unit
//
// # Virtual time
//
// With -device sim:PROFILE the ranks are tasks of one process, each with a card of that
// profile (verbs/sim), and the clock is theirs: values are exact, depend on nothing of this
// machine, and are the same again with the same -seed. So two loops are enough, of a tenth
// of the turns: in the first the library may still register memory of its own. Posting,
// polling, registering and the library's copies take the processor of a rank what the profile
// says, and all other instructions nothing; overlap_put_lat and halo_lat compute 2 ns a turn. What is of
// sockets or of processor time is left out. The buffers of a case are registered before, but
// not those of the hash table. With -rails 2 each rank has two cards (verbs/rails); -set
// striping=off has it use the first alone, which tells what the other brings.
//
// With -trace, too, what the cards do and when the timed loops are goes to a file for
// ui.perfetto.dev or chrome://tracing: go run ./bench -device sim:pcie-2005 -trace t.json
// pattern16_bw:65536 shows reads and writes take turns on both directions of the link. So it
// does with -device tcp or ibv, from what each rank sees of its own requests (verbs/traced): the
// last 65536 of them. To note them takes time of what is measured.
//
// # Peers
//
// With -peers a round goes case by case: we and then each peer measure one, in
// processes of its own with all of its sizes, before the next. Every other round has
// them in the opposite order. Machines change their speed, and by more than what
// there is to tell apart; so a ratio is only taken within a round, of what was
// measured seconds apart, to the peer that was the better one in that round, and
// the median of the rounds' ratios counts. It is printed with the lowest and the
// highest. The columns of absolute figures are medians too, but each of its own: at
// another speed their ratio may be another.
//
// A run that is ended early prints the table of what came before, and which turns are missing. A peer whose compiler fails is
// left out, also of kernels, and the table says why.
//
// Goals depend on the device. A goal that is a ratio to another case has that case
// measured in each round right beside the one that it is of.
//
// # Schemes
//
// With schemes before the flags it is compared what each way to arrange the operations of
// an epoch (scheduler.Scheme) brings over TCP or, with -device ibv, an RDMA card, or, with -device sim:PROFILE, in virtual time,
// and whether the adaptive mode finds the best: each case as a pattern of epochs, by ranks
// of its own, with all schemes in turn. Each has a window of its own, which it keeps, and
// runs for a fifth of a second before the first round. In a round each has one loop of some
// 20 ms, so that the machine has one speed for all of them. A line of output is then
//
//	case size value unit scheme ratio
//
// with medians of the rounds: of the value, and of the time taken to that of the best fixed
// scheme in the same round, for which more is worse whatever the unit. That scheme is the
// same for all rounds. A table with all of it follows. It takes about two minutes, and
// up to a gigabyte of memory for the windows.
//
// # Kernels
//
// With kernels before the flags it is compared how fast whole jobs are: the commands gups, stencil and transpose
// of examples, with their MPI versions. The program builds them and cmd/rmarun, so it runs inside the module
// only. Of gups the MPI version is examples/gups/peer/gups.c, which is built with each peer. Of the other two it
// is that of the Parallel Research Kernels (MPIRMA), which the user builds with the peers: -prk names a directory
// with stencil.openmpi, stencil.mpich, transpose.openmpi and transpose.mpich, or some of them, and without it ours
// are alone. All have the same sizes: 2^22 words, over TCP 2^20, and the order 1000 for 300 iterations.
//
// A round goes kernel by kernel, every other round with everyone in the opposite order, and the ratio is taken and held
// against goals as with -peers; for all units more is better. A kernel may take a minute: who fails or takes
// longer is told of below the table, and in the latter case has no further turn.
//
// # Papers
//
// With paper before the flags the figures of the papers that this library follows are
// reproduced: the library's own code with a mechanism on and off, in virtual time on the
// paper's hardware, which the profiles of verbs/sim have with its sources. Nothing there or
// here is fitted to a figure. A line of output is
//
//	part figure case theirs ours unit within|off
//
// where part is the paper's letter: A is "Scheduling of MPI-2 one-sided operations over
// InfiniBand", B "Efficient RDMA-based small-message communication for frequently used
// buffers", C "A high performance superpipeline protocol for InfiniBand",
// E "High performance RDMA protocols in HPC". What improves by some percent is within if it improves by what the paper
// says, by a fifth of that less or more, or by still more for a reason that is told below the
// lines; what the paper says of an order or of equality has to hold. A run of which something
// is off ends with status 1. With -svg each figure is drawn as in the paper, with -curves its
// values are printed.
//
// What part A measures: most_gain and most_saved are the improvement at the size where it
// is largest, least_gain and least_saved where it is smallest, gain_at_bus the largest where
// the base line is within a tenth of its best, large_over_small how much larger it is at the
// largest size than at the smallest, saved_at_largest what it is there, and peak the highest
// throughput. Ping-pongs and throughput are those of the cases pscw_put_lat, pscw_get_lat,
// pscw_both_lat and pattern16_bw, with buffers that are registered before.
//
// In part B on and off the operations are RDMA whatever their length, from buffers that the
// program does not register: off they are copied each time, on the library registers what is
// used frequently. uses_SIZE is from how many uses on that pays, saved_at_SIZE what it saves.
//
// Part C measures bandwidth there and back, by puts that notify: how much of that of buffers which
// the program registers is lost by, or left to, each way that a buffer gets to the card of which it
// does not know. Sizes are 5 % from each other, as in the paper. Part E does the
// same for buffers that are used once, or so many times (uses_to_reach_pipeline is from how many on
// the registration cache is as good as the pipeline, one more than were measured if it never is),
// and for the patterns of the effective bandwidth benchmark at its largest size.
//
// Part trace is of no paper: sequences of buffers (package internal/traces), each used as a put and
// its flush, by one way to the card each time and as the library likes. time_WAY is what all of it
// takes, which nothing is held against (-), auto_of_best what the library takes of the best way.
//
// # Reports
//
// With report before the flags cases are measured in rounds on several devices, and with -peers beside
// MPI, and what there is to see goes into the directory of -o: report.html, a page that needs no other file
// and no script, its plots as .svg, and results.txt, where each round of a cell is a line of Go's benchmark
// format, so that benchstat compares two reports. Everyone measures a case before the next, and every
// other round goes backwards. Without named cases the schemes over TCP and the workloads of scale are
// measured, too, and with -peers but no -set the kernels over shm and tcp, for which there is -prk here as well. A run
// that is ended early, or fails, writes what it has, and says so in the page. The page begins with the medians, what failed,
// and how busy other processes kept the machine. Progress on standard error estimates what is left by what the cells
// took so far, as slow as the machine is at the moment.
//
// # Gate
//
// With gate before the flags the program of an earlier commit and the one of this work tree measure 30 cells in turns, and
// the run fails if a cell is slower than it was by more than 5 % (-limit). The earlier program is built in a git worktree,
// which is removed before the first measurement. A line of the table is
//
//	device case size unit old new ratio interval noise rounds verdict
//
// The ratio is that of the costs within a round, and 1.10 is 10 % slower whatever the unit. Its interval has the lower bound
// that a cell fails by and the upper bound that it passes by. The noise is what measuring the earlier program twice in
// each round differs by. Package bench/internal/gate has the method and its error rates: if no cell is slower by more than
// the limit, a run fails with a probability of 1 % at most, and a cell that is slower passes with one of 5 % at most.
//
// A cell is measured until it is decided, or until the rounds (-rounds) or the time (-minutes) are used up. Then it is no
// failure, and its verdict says what slowdown would have been found. So does a busy machine: it takes more rounds,
// or leaves more cells undecided. Cells in virtual time are exact, and are measured once. A cell that the earlier program does
// not have is new. What that program cannot measure is no failure either, unlike what the later one alone cannot.
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
