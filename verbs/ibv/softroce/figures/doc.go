// Figures compares one-sided operations over an RDMA card with perftest's programs on the same card: ib_write_lat,
// ib_read_lat, ib_atomic_lat, ib_write_bw and ib_read_bw.
//
//	RMA_DEVICE=ibv rmarun -n 2 ./figures            # built with -tags ibverbs
//	RMA_DEVICE=ibv rmarun -n 2 ./figures -rounds 9 put get
//
// Rank 0 measures. Rank 1 is the target and waits in a barrier. A round measures case by case: perftest, then this
// library, then the bare card, which is a loop in Go that posts the same requests and polls by package verbs/ibv alone.
// So the values of a ratio are measured within a second or two. The output has the medians of the rounds' ratios, with
// the lowest and the highest. The difference between the bare card and perftest is Go's foreign calls and the loop. The
// difference between the operations and the bare card is the library.
//
// A latency is the median of a loop's turns, as perftest's t_typical. A bandwidth or a rate is the mean of a loop. An
// operation with its flush is a round trip. So it is compared with two messages of ib_write_lat, which are one-way, or
// with one message of ib_write_bw if only one is outstanding (put_single).
//
// ib_write_lat polls memory without ever yielding: its result is meaningless if its two processes share one processor.
package main
