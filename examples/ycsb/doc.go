// Ycsb runs the workloads of the Yahoo! Cloud Serving Benchmark on a hash table that the ranks of a job share
// (package hashtable), and on Redis for comparison:
//
//	go run ./cmd/rmarun -n 2 ./examples/ycsb -workload A -redis
//
// Every rank loads its share of the records. Then all ranks carry out operations in batches. The records are drawn by
// a scrambled Zipf's law or evenly:
//
//	A  half reads, half updates
//	B  95 % reads, 5 % updates
//	C  reads
//	F  half reads, half read-modify-writes, which read in one batch and write in the next
//
// An operation's latency is that of its batch, or of its two batches. Each value that is read is checked. It contains
// its record and its version, and every other word follows from these, so a mixture of two values is found. The draws
// are made beforehand, a million for each rank, and used in turn.
//
// The table reuses the space of replaced values. It has room for three times what the records take. The run ends
// after a number of operations instead of a time.
//
// # Redis
//
// With -redis rank 0 starts its own redis-server, without persistence, when the ranks have finished and sleep. Redis
// must be installed there. The server listens at a Unix socket if the ranks share memory, and otherwise at a loopback
// address. redis-benchmark uses as many clients as there are ranks. The number of records, the keys of 16 bytes and the
// length of values are the same, and the records are drawn evenly. It pipelines 16 requests, then 64, then as many as a
// batch of the table has if that is more. The best result counts. It measures GET and SET separately; the rate of a mix
// is computed from these as if nothing else were lost.
package main
