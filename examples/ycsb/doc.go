// Ycsb puts the load of the Yahoo! Cloud Serving Benchmark on a hash table that the ranks
// of a job share (package hashtable), and on Redis beside it:
//
//	go run ./cmd/rmarun -n 2 ./examples/ycsb -workload A -redis
//
// Every rank loads its share of the records, then all carry out operations on records drawn
// by a scrambled Zipf's law or evenly, in batches:
//
//	A  half reads, half updates
//	B  95 % reads, 5 % updates
//	C  reads
//	F  half reads, half read-modify-writes, which read in one batch and write in the next
//
// An operation's latency is that of its batch, or its two batches. Each value that is read is
// checked: it says which record it is of and who wrote it, and every word of it follows from
// that, so one that was mixed of two is found. The draws are made beforehand, a million for
// each rank, and used in turn.
//
// The table uses the space of values again that were replaced: it has room for three times what the records take.
// The run ends after a number of operations instead of a time.
//
// # Redis
//
// With -redis rank 0, where Redis has to be installed, starts a redis-server of its own when the ranks have finished and
// sleep, without persistence: at a socket in the file system where the ranks share memory, at loopback where
// they do not. redis-benchmark puts as many clients on it as there are ranks, with as many
// records, keys of the same 16 bytes, values as long, evenly drawn, pipelined in 16, in 64,
// and in as many as a batch of the table has if those are more; the best is taken. It measures GET and SET by themselves, and the rate of a mix is what
// these give if nothing else is lost.
package main
