// Figures holds what one-sided operations take over an RDMA card against perftest's programs
// on the same card: ib_write_lat, ib_read_lat, ib_atomic_lat, ib_write_bw and ib_read_bw.
//
//	RMA_DEVICE=ibv rmarun -n 2 ./figures            # built with -tags ibverbs
//	RMA_DEVICE=ibv rmarun -n 2 ./figures -rounds 9 put get
//
// Rank 0 measures, rank 1 is the target and waits in a barrier. A round goes case by case:
// perftest, then ours, then the bare card: a loop in Go that posts the same requests and polls,
// by package verbs/ibv alone. So a ratio is of what was measured within a second or two. Medians
// of the rounds' ratios are printed, with the lowest and the highest. What the bare card is
// above 1 is Go's foreign calls and the loop's; what the operations are above the bare card is the
// library's.
//
// A latency is the median of a loop's turns, as perftest's t_typical, and a bandwidth or a rate the
// mean of all of a loop. An operation and its flush are there and back, and so are two of
// ib_write_lat's, which are one way; so is one message of ib_write_bw's where one is on its way at
// once (put_single).
//
// ib_write_lat waits for memory to change without ever yielding: where its two processes have one
// processor only, it tells nothing.
package main
